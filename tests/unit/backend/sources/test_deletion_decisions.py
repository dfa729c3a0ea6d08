"""Documents that are missing from a source: which they are, and what probably happened."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from backend.sources.deletion_decisions import Evidence, explain_missing, find_common_place
from backend.store.sync import listings, run_transitions, schedule
from backend.store.sync.runs import Run
from backend.sync.run_lease import this_process
from connectors.document import Document
from connectors.errors import NotFoundError
from tests.support.store import Store, document, source_service, store_at


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk", "web") as store:
        yield store


def file(path: str) -> Document:
    return replace(document(f"desk:{path}"), link=f"file:///srv/desk/{path}")


def listed(store: Store, *paths: str) -> int:
    """A listing of these, whose run ended well."""
    run = _list(store, *paths)
    run_transitions.close(store.database, run, "done")
    return run


def undecided(store: Store, held: int, *paths: str) -> None:
    """A listing of these, which too many of the held are missing from."""
    run = _list(store, *paths)
    numbers = {"held": held, "listed": len(paths), "missing": held - len(paths)}
    run_transitions.require_decision(store.database, run, "Much is gone.", numbers)


def _list(store: Store, *paths: str) -> int:
    run = run_transitions.begin(store.database, "desk", "prune", this_process(), _gone)
    listing = listings.resume(store.database, run)
    store.ledger.mark_seen("desk", listing.number, [f"desk:{path}" for path in paths])
    listings.finish(store.database, "desk")
    return run


def _gone(run: Run) -> bool:
    del run
    return True


def test_what_would_go_is_listed_page_by_page(store: Store) -> None:
    paths = [f"{folder}/{number}" for folder in "ab" for number in range(4)]
    store.hold(*map(file, paths), replace(document("web:x")))
    listed(store, *paths)
    undecided(store, 8, *paths[:4])
    first = source_service(store.database).decision("desk", limit=3)
    assert (first.held, first.listed, first.missing, first.has_more) == (8, 4, 4, True)
    assert [one.id for one in first.documents] == ["desk:b/0", "desk:b/1", "desk:b/2"]
    assert first.documents[0].link == "file:///srv/desk/b/0"
    last = source_service(store.database).decision("desk", first.documents[-1].id, 3)
    assert ([one.id for one in last.documents], last.has_more) == (["desk:b/3"], False)


def test_what_came_after_the_listing_is_not_among_it(store: Store) -> None:
    store.hold(file("a/1"), file("a/2"))
    undecided(store, 2, "a/1")
    store.hold(file("a/3"))
    # A later listing that was broken off saw one of them again.
    store.ledger.mark_seen("desk", 10_000, ["desk:a/2"])
    assert source_service(store.database).decision("desk").documents == ()


def test_where_nothing_is_to_be_decided_there_is_no_list(store: Store) -> None:
    with pytest.raises(NotFoundError, match="'desk' has no run that waits for a decision"):
        source_service(store.database).decision("desk")


def test_a_folder_that_went_away_as_a_whole_is_named(store: Store) -> None:
    paths = ["a b/1", "a b/2/3", "c/1", "c/2"]
    store.hold(*(file(path.replace(" ", "%20")) for path in paths))
    undecided(store, 4, "c/1", "c/2")
    cause = source_service(store.database).decision("desk").cause
    assert cause.startswith("All of them are in /srv/desk/a b/, where nothing is left.")


def test_other_settings_are_the_first_suspect(store: Store) -> None:
    paths = ["a/1", "a/2", "b/1"]
    store.hold(*map(file, paths))
    listed(store, *paths)
    settings = {"path": "/tmp", "exclude": ["a/**"]}
    source_service(store.database).edit("desk", settings, None)
    undecided(store, 3, "b/1")
    assert (
        "The settings were changed on 20" in source_service(store.database).decision("desk").cause
    )


def test_settings_that_were_changed_before_are_no_suspect(store: Store) -> None:
    paths = ["a/1", "a/2", "b/1"]
    store.hold(*map(file, paths))
    source_service(store.database).edit("desk", {"path": "/tmp"}, None)
    listed(store, *paths)
    undecided(store, 3, "b/1")
    assert "settings" not in source_service(store.database).decision("desk").cause


def test_a_decision_stays_the_same_however_often_the_source_is_listed(store: Store) -> None:
    paths = ["a/1", "a/2", "b/1"]
    store.hold(*map(file, paths))
    listed(store, *paths)
    source_service(store.database).edit("desk", {"path": "/tmp", "exclude": ["a/**"]}, None)
    for _ in range(3):
        undecided(store, 3, "b/1")
        schedule.record_end(store.database, "desk", ["permissions"], datetime.now(UTC))
    found = source_service(store.database).decision("desk")
    assert [one.id for one in found.documents] == ["desk:a/1", "desk:a/2"]
    assert "settings" in found.cause


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("evidence", "says"),
    [
        (Evidence(source="desk", listed=0), "desk listed nothing at all. Its disk or share"),
        (
            Evidence(source="desk", listed=9, place="https://wiki.test/spaces/HR/"),
            "All of them are in https://wiki.test/spaces/HR/, where nothing is left.",
        ),
        (
            Evidence(source="desk", listed=9, place="file:///srv/%C3%A9/", left=3),
            "All of them are in /srv/é/, where 3 other documents can still be found.",
        ),
        (Evidence(source="desk", listed=9), "No single folder accounts for the missing documents."),
        (
            Evidence(source="desk", listed=0, changed=frozenset({"credential"}), changed_at=NOON),
            "The credential was replaced on 2026-11-2",
        ),
    ],
)
def test_the_surest_sign_is_reported_first(evidence: Evidence, says: str) -> None:
    assert explain_missing(evidence).startswith(says)


@pytest.mark.parametrize(
    ("links", "place"),
    [
        ([], ""),
        (["file:///srv/a/1", "file:///srv/a/b/2"], "file:///srv/a/"),
        (["file:///srv/ab/1", "file:///srv/a/2"], "file:///srv/"),
        (["https://a.test/x", "https://b.test/x"], ""),
        (["https://a.test/x", "https://a.test/y"], ""),
        (["https://a.test/x/1"], "https://a.test/x/"),
        (["1", "2"], ""),
    ],
)
def test_a_common_place_ends_at_a_slash_and_is_more_than_a_host(
    links: list[str], place: str
) -> None:
    assert find_common_place(links) == place
