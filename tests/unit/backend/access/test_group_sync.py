"""Groups change in an order in which nobody may read what they may read neither before nor after."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from backend.access.group_sync import syncing_groups
from backend.access.readers import resolve_readers
from backend.store.documents import batches
from backend.store.sync import run_transitions, sources
from backend.store.sync.runs import RunEndedError
from backend.sync.run_lease import this_process
from connectors.access import Access, Readers
from connectors.connector import Checkpoint, GroupItem, ReaderGroup
from connectors.errors import TemporarilyUnavailableError
from indexing.ingestion.listings import DeletionGuard, DeletionNeedsApprovalError
from tests.support.groups import save_groups, token_of
from tests.support.store import Store, document, gone, store_at

SILENT = TemporarilyUnavailableError("The source is silent.", timedelta(seconds=1))
FAILURE = Checkpoint("the source does not answer")
ANN, BOB, CY = (f"user:{name}@example.com" for name in ("ann", "bob", "cy"))


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with store_at(database_url, "desk", "web") as store:
        yield store


def number(store: Store) -> int:
    return sources.find(store.database, "desk").id


def begin(store: Store) -> int:
    return run_transitions.begin(store.database, "desk", "permissions", this_process(), gone)


@contextmanager
def syncing(store: Store, run: int, *listed: GroupItem) -> Iterator[None]:
    """Compare with a source that lists these groups, from wherever it is asked to resume."""

    def list_groups(since: Checkpoint | None) -> Iterator[GroupItem]:
        start = listed.index(since) + 1 if since else 0
        for item in listed[start:]:
            if item is FAILURE:
                raise SILENT
            yield item

    with syncing_groups(store.database, run, number(store), list_groups):
        yield


def group(store: Store, name: str, *members: str) -> ReaderGroup:
    return ReaderGroup(token_of(number(store), name), frozenset(members))


def hold_of(store: Store, name: str, *clauses: list[str]) -> None:
    store.hold(document(name, access=Access.all_of(clauses)))


def members(store: Store, name: str) -> set[str]:
    token = token_of(number(store), name)
    askers = (ANN, BOB, CY)
    return {
        each for each in askers if token in resolve_readers(store.database, Readers.of(each)).tokens
    }


def test_who_left_counts_before_documents_are_compared_and_who_joined_after(store: Store) -> None:
    save_groups(store.database, "desk", {"team": [ANN, BOB], "old": [ANN]})
    with syncing(store, begin(store), group(store, "team", BOB, CY)):
        assert members(store, "team") == {BOB}
        assert members(store, "old") == set()
    assert members(store, "team") == {BOB, CY}


def test_members_of_a_group_that_no_document_names_count_at_once(store: Store) -> None:
    team, board = (token_of(number(store), name) for name in ("team", "board"))
    hold_of(store, "desk:a", [team])
    hold_of(store, "desk:b", [board], ["group:staff"])
    listed = [group(store, name, ANN) for name in ("team", "board", "new")]
    with syncing(store, begin(store), *listed):
        # A document may have left a group that somebody joined since.
        assert members(store, "team") == set()
        assert members(store, "board") == set()
        assert members(store, "new") == {ANN}
    assert members(store, "team") == members(store, "board") == {ANN}


def test_what_waits_to_be_indexed_may_name_any_group(store: Store) -> None:
    run = begin(store)
    batches.save(store.database, run, [document("desk:a")], None)
    with syncing(store, run, group(store, "team", ANN)):
        assert members(store, "team") == set()
    assert members(store, "team") == {ANN}


def test_who_joined_waits_for_a_comparison_that_comes_to_its_end(store: Store) -> None:
    save_groups(store.database, "desk", {"team": [ANN]})
    run = begin(store)
    with pytest.raises(TemporarilyUnavailableError), syncing(store, run, group(store, "team", BOB)):
        raise SILENT
    assert members(store, "team") == set()
    # The groups were listed, and are not asked for again.
    with syncing(store, run, FAILURE):
        assert members(store, "team") == set()
    assert members(store, "team") == {BOB}
    with syncing(store, run, group(store, "team", BOB, CY)):
        assert members(store, "team") == {BOB}
    assert members(store, "team") == {BOB, CY}


def test_groups_that_are_listed_in_several_tries_are_compared_as_one_listing(store: Store) -> None:
    save_groups(store.database, "desk", {"a": [ANN], "b": [ANN], "old": [ANN]})
    run, reached = begin(store), Checkpoint("b")
    a, b, c = (group(store, name, BOB) for name in "abc")
    with pytest.raises(TemporarilyUnavailableError), syncing(store, run, a, b, reached, FAILURE):
        pytest.fail("not all groups are known")
    assert members(store, "a") == members(store, "b") == set()
    # One that was not reached is not missing.
    assert members(store, "old") == {ANN}
    with syncing(store, run, reached, c):
        assert members(store, "old") == set()
    assert [members(store, name) for name in "abc"] == [{BOB}] * 3


def test_a_deletion_that_waits_for_approval_holds_nobody_up(store: Store) -> None:
    hold_of(store, "desk:a", [token_of(number(store), "team")])
    too_many = DeletionNeedsApprovalError(
        DeletionGuard(source="desk", held=100, listed=1, missing=99)
    )
    with (
        pytest.raises(DeletionNeedsApprovalError),
        syncing(store, begin(store), group(store, "team", BOB)),
    ):
        raise too_many
    assert members(store, "team") == {BOB}


def test_a_listing_that_fails_takes_no_group_away(store: Store) -> None:
    save_groups(store.database, "desk", {"team": [ANN], "rest": [BOB]})
    with (
        pytest.raises(TemporarilyUnavailableError),
        syncing(store, begin(store), group(store, "team", ANN), FAILURE),
    ):
        pytest.fail("documents are compared with groups that are not known")
    assert members(store, "rest") == {BOB}


@pytest.mark.parametrize(
    ("token", "member"),
    [
        ("group:board", ANN),
        ("external:{other}:team", ANN),
        ("external:{own}1:team", ANN),
        ("public", ANN),
        (ANN, BOB),
        ("all:" + "0" * 64, ANN),
        ("external:{own}:team", "external:{other}:team"),
        ("external:{own}:team", "all:" + "0" * 64),
        ("external:{own}:team", "user:Ann@example.com"),
    ],
)
def test_a_source_changes_no_groups_but_its_own(store: Store, token: str, member: str) -> None:
    own, other = number(store), sources.find(store.database, "web").id
    listed = ReaderGroup(
        token.format(own=own, other=other), frozenset({member.format(own=own, other=other)})
    )
    with (
        pytest.raises(ValueError, match=r"not a group|may not be a member|not a reader|normalized"),
        syncing(store, begin(store), listed),
    ):
        pytest.fail("it was accepted")
    asker = Readers.of(ANN, BOB)
    assert resolve_readers(store.database, asker) == asker


def test_a_run_that_another_took_over_saves_nothing(store: Store) -> None:
    save_groups(store.database, "desk", {"team": [ANN]})
    run = begin(store)
    run_transitions.close(store.database, run, "interrupted", "It was stopped.")
    with (
        pytest.raises(RunEndedError),
        syncing(store, run, group(store, "team", BOB)),
    ):
        pytest.fail("it was saved")
    assert members(store, "team") == {ANN}
