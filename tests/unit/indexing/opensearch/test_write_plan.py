"""What a batch comes to, and which records it takes on the way."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from connectors.document import NOBODY, Access
from indexing.index.protocols import Amend, Delete, IndexChange, Written
from indexing.index.validation import BatchLimits, PreparedReplace, prepare_batches
from indexing.opensearch.record_mapping import Columns, DocumentRecord, Held, Version, record_of
from indexing.opensearch.write_plan import planned, told, widened
from tests.support.chunks import DIMENSION, document

FINANCE = Access.to(["group:finance"])


def items(*changes: IndexChange) -> list[Any]:
    (batch,) = prepare_batches(changes, DIMENSION, BatchLimits(99, 99))
    return batch


def held(name: str, *texts: str, **fields: Any) -> Held:
    (item,) = items(document(name, *texts, **fields))
    assert isinstance(item, PreparedReplace)
    return Held(record_of(item, Version(f"v of {name}", len(texts))), 5, 1)


def known(*records: Held) -> Mapping[str, Held]:
    return {each.record.id: each for each in records}


def test_what_is_older_or_not_there_is_not_done() -> None:
    plan = planned(
        items(
            document("old", "x", generation=3),
            document("same", "x", generation=4),
            Delete("gone"),
            Amend(document_id="never", boost=2.0),
            Delete("there"),
        ),
        known(held("old", "x", generation=4), held("same", "x", generation=4), held("there", "x")),
    )
    assert (plan.stale, plan.missing) == (("old",), ("gone", "never"))
    assert [work.name for work in plan.works] == ["same", "there"]
    assert told(plan.works, plan) == Written(
        replaced=1, chunks=1, deleted=1, stale=("old",), missing=("gone", "never")
    )


def test_a_new_document_is_announced_as_one_that_nobody_sees() -> None:
    (work,) = planned(items(document("a", "one", "two")), {}).works
    assert work.announced is not None
    assert (work.announced.state, work.announced.version) == ("coming", Version("", 0))
    assert work.announced.leaving == (work.flipped.version,)
    assert work.flipped.version.chunks == 2
    # Nothing is to be cleaned up after it.
    assert not work.flipped.unfinished


def test_a_replacement_leaves_the_document_as_it_is_until_it_is_flipped() -> None:
    before = held("a", "one")
    (work,) = planned(items(document("a", "uno", "due", generation=2)), known(before)).works
    new = work.flipped.version
    assert work.announced == replace(before.record, leaving=(new,), unfinished=True)
    assert (work.flipped.generation, work.flipped.unfinished) == (2, True)
    assert work.flipped.leaving == (Version("v of a", 1),)


def test_no_two_attempts_share_a_version() -> None:
    names = {
        work.flipped.version.name
        for _ in range(100)
        for work in planned(items(document("a", "one")), {}).works
    }
    assert len(names) == 100


def test_without_chunks_there_is_nothing_to_announce_or_to_clean() -> None:
    (work,) = planned(items(document("a", generation=2)), known(held("a"))).works
    assert work.announced is None
    assert (work.flipped.leaving, work.flipped.unfinished) == ((), False)


def test_a_deletion_is_seen_at_once_and_names_what_is_to_go() -> None:
    before = held("a", "one")
    (work,) = planned(items(Delete("a")), known(before)).works
    assert work.announced is None
    assert work.flipped == replace(
        before.record, state="gone", leaving=(Version("v of a", 1),), unfinished=True
    )


@pytest.mark.parametrize(
    ("change", "steps"),
    [
        # Chunks have to be found by more before the flip, and by fewer after it.
        ({"access": Access.to(["public", "group:x"])}, "announced, flipped, finished"),
        ({"access": FINANCE}, "announced, flipped, finished"),
        ({"sets": frozenset({"new"})}, "announced, flipped, finished"),
        ({"access": NOBODY}, "flipped, finished"),
        ({"sets": frozenset()}, "flipped, finished"),
        ({"hidden": True}, "flipped, finished"),
        ({"boost": 2.0}, "flipped, finished"),
        # Nothing that the chunks say is touched.
        ({"access": Access.to(["public"])}, "finished"),
        ({"hidden": False}, "finished"),
        ({}, "finished"),
    ],
)
def test_an_amendment_takes_as_many_steps_as_it_needs(change: dict[str, Any], steps: str) -> None:
    before = held("a", "one", sets=frozenset({"old"}))
    (work,) = planned(items(Amend(document_id="a", **change)), known(before)).works
    announced = replace(before.record, unfinished=True) if "announced" in steps else None
    assert work.announced == announced
    assert work.flipped == replace(before.record, **change, unfinished="flipped" in steps)


def test_what_amends_a_hidden_document_touches_no_chunks() -> None:
    before = held("a", "one", hidden=True)
    (work,) = planned(items(Amend(document_id="a", access=FINANCE)), known(before)).works
    assert (work.announced, work.flipped.unfinished) == (None, False)
    assert work.flipped.access == FINANCE


def test_in_between_chunks_are_found_by_those_before_and_those_after() -> None:
    before = held("a", "one", sets=frozenset({"old"})).record
    after = replace(before, access=FINANCE, sets=frozenset({"new"}), boost=3.0)
    everybody = frozenset({"public", "group:finance"})
    assert widened(before, after) == Columns(everybody, frozenset({"old", "new"}), 3.0)


def test_what_was_written_adds_up() -> None:
    one = Written(replaced=1, chunks=2, stale=("a",))
    other = Written(chunks=3, deleted=4, amended=5, stale=("b",), missing=("c",))
    assert one + other == Written(
        replaced=1, chunks=5, deleted=4, amended=5, stale=("a", "b"), missing=("c",)
    )


def test_a_finished_record_is_the_same_with_nothing_left() -> None:
    record: DocumentRecord = held("a", "one").record
    assert replace(record, leaving=(Version("v", 1),), unfinished=True).finished() == record
