"""An unfinished listing is continued by the next run, as long as it proves something."""

from datetime import timedelta

import pytest

from backend.store.sync import listings, run_transitions, runs, sources
from backend.store.sync.listings import OpenListing
from backend.store.sync.runs import RunEndedError
from backend.sync.run_lease import this_process
from connectors.connector import Checkpoint
from indexing.ingestion.ledger import Failed, VersionSeen
from tests.support.store import Store, alive, document

REACHED = Checkpoint("after desk:b")


def begin(store: Store) -> int:
    """Begin a run; the one before has ended."""
    latest = runs.latest(store.database).get("desk")
    if latest is not None:
        run_transitions.close(store.database, latest.id, "done")
    return run_transitions.begin(store.database, "desk", "prune", this_process(), alive)


def interrupted(store: Store) -> OpenListing:
    """A listing that contained `desk:a` and `desk:b` and has reached a place."""
    listing = listings.resume(store.database, begin(store))
    store.ledger.mark_seen("desk", listing.number, ["desk:a", "desk:b"], REACHED)
    return listing


def test_the_next_run_continues_it_under_its_number(store: Store) -> None:
    listing = interrupted(store)
    run = begin(store)
    assert listings.resume(store.database, run) == OpenListing(listing.number, REACHED)
    assert runs.find(store.database, run).listing == listing.number
    first = runs.find_first_of_listing(store.database, "desk", listing.number)
    assert first is not None
    assert first.id < run


def test_a_listing_is_found_by_its_source_and_its_number(store: Store) -> None:
    web = run_transitions.begin(store.database, "web", "prune", this_process(), alive)
    listings.resume(store.database, web)
    number = listings.resume(store.database, web, max_age=timedelta(0)).number
    assert interrupted(store).number == number
    run = runs.latest(store.database)["desk"].id
    first = runs.find_first_of_listing(store.database, "desk", number)
    assert first is not None
    assert (first.id, first.source) == (run, "desk")
    assert runs.find_first_of_listing(store.database, "desk", number + 1) is None


def test_one_that_is_finished_is_not_continued(store: Store) -> None:
    listing = interrupted(store)
    assert listings.finish(store.database, "desk") is not None
    assert listings.finish(store.database, "desk") is None
    # A worker that wakes up late saves no place.
    store.ledger.mark_seen("desk", listing.number, ["desk:c"], REACHED)
    following = listings.resume(store.database, begin(store))
    assert following.since is None
    assert following.number > listing.number


def test_it_is_compared_once_it_is_finished_as_of_its_beginning(store: Store) -> None:
    web = run_transitions.begin(store.database, "web", "prune", this_process(), alive)
    listings.resume(store.database, web)
    interrupted(store)
    assert listings.list_compared(store.database) == {}
    began = {name: listings.finish(store.database, name) for name in ("desk", "web")}
    listings.resume(store.database, begin(store))
    assert listings.list_compared(store.database) == began
    assert listings.list_compared(store.database, "web") == {"web": began["web"]}


def test_one_that_reached_no_checkpoint_starts_anew(store: Store) -> None:
    """What it contained may have been deleted since, and it will not be passed again."""
    store.hold(document("desk:a"))
    listing = listings.resume(store.database, begin(store))
    store.ledger.mark_seen("desk", listing.number, ["desk:a"])
    following = listings.resume(store.database, begin(store))
    assert following.since is None
    assert list(store.ledger.unseen("desk", following.number)) == ["desk:a"]


def test_one_that_is_too_old_starts_anew_even_in_the_same_run(store: Store) -> None:
    store.hold(document("desk:a"))
    listing = interrupted(store)
    run = runs.latest(store.database)["desk"].id
    following = listings.resume(store.database, run, max_age=timedelta(0))
    assert following.since is None
    assert following.number > listing.number
    assert list(store.ledger.unseen("desk", following.number)) == ["desk:a"]
    assert listings.resume(store.database, begin(store)).number > following.number


def test_other_settings_or_another_credential_start_it_anew(store: Store) -> None:
    interrupted(store)
    sources.edit(store.database, "desk", sources.find(store.database, "desk").settings, "sealed")
    assert listings.resume(store.database, begin(store)).since is None


def test_what_is_read_meanwhile_counts_as_listed(store: Store) -> None:
    store.hold(*(document(f"desk:{name}") for name in "abcd"), document("web:a"))
    listing = interrupted(store)
    store.ledger.save([VersionSeen("desk:c", "2")])
    store.hold(document("desk:e"))
    failed = Failed(source="desk", document_id="desk:f", item="f", reason="It is empty.")
    store.ledger.save([failed])
    assert list(store.ledger.unseen("desk", listing.number)) == ["desk:d"]
    assert store.ledger.count_seen("desk", listing.number) == 5
    listings.finish(store.database, "desk")
    store.hold(document("desk:g"))
    assert list(store.ledger.unseen("desk", listing.number)) == ["desk:d", "desk:g"]


def test_a_run_that_was_ended_continues_nothing(store: Store) -> None:
    run = begin(store)
    run_transitions.stop(store.database, "desk", "cancelled")
    with pytest.raises(RunEndedError):
        listings.resume(store.database, run)
