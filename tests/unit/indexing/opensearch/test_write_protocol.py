"""What a batch requires, which states its records go through, and when a record is taken over."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from connectors.access import NOBODY, Access
from indexing.index.protocols import Amend, Delete, IndexChange, Written
from indexing.index.validation import BatchLimits, PreparedReplace, prepare_batches
from indexing.opensearch.record_mapping import (
    ChunkLabels,
    DocumentRecord,
    StoredRecord,
    Version,
    record_of,
)
from indexing.opensearch.write_protocol import IdleWatch, combine_labels, plan_writes
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import DIMENSION, document

FINANCE = Access.to(["group:finance"])


def items(*changes: IndexChange) -> list[Any]:
    (batch,) = prepare_batches(changes, DIMENSION, BatchLimits(99, 99), BY_LANGUAGE)
    return batch


def held(name: str, *texts: str, **fields: Any) -> StoredRecord:
    (item,) = items(document(name, *texts, **fields))
    assert isinstance(item, PreparedReplace)
    return StoredRecord(record_of(item, Version(f"v of {name}", len(texts))), 5, 1)


def known(*records: StoredRecord) -> Mapping[str, StoredRecord]:
    return {each.record.id: each for each in records}


def test_what_is_older_or_not_there_is_not_done() -> None:
    plan = plan_writes(
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
    assert [step.id for step in plan.changes] == ["same", "there"]
    assert plan.to_result(plan.changes) == Written(
        replaced=1, chunks=1, deleted=1, stale=("old",), missing=("gone", "never")
    )


def test_a_new_document_is_announced_as_one_that_nobody_sees() -> None:
    (step,) = plan_writes(items(document("a", "one", "two")), {}).changes
    assert step.announced is not None
    assert (step.announced.state, step.announced.version) == ("coming", Version("", 0))
    assert step.announced.leaving == (step.committed.version,)
    assert step.committed.version.chunks == 2
    # Nothing is to be cleaned up after it.
    assert not step.committed.unfinished


def test_a_replacement_leaves_the_document_unchanged_until_it_is_committed() -> None:
    before = held("a", "one")
    (step,) = plan_writes(items(document("a", "uno", "due", generation=2)), known(before)).changes
    new = step.committed.version
    assert step.announced == replace(before.record, leaving=(new,), unfinished=True)
    assert (step.committed.generation, step.committed.unfinished) == (2, True)
    assert step.committed.leaving == (Version("v of a", 1),)


def test_no_two_attempts_share_a_version() -> None:
    names = {
        step.committed.version.name
        for _ in range(100)
        for step in plan_writes(items(document("a", "one")), {}).changes
    }
    assert len(names) == 100


def test_without_chunks_there_is_nothing_to_announce_or_to_clean() -> None:
    (step,) = plan_writes(items(document("a", generation=2)), known(held("a"))).changes
    assert step.announced is None
    assert (step.committed.leaving, step.committed.unfinished) == ((), False)


def test_a_deletion_is_seen_at_once_and_names_what_is_to_go() -> None:
    before = held("a", "one")
    (step,) = plan_writes(items(Delete("a")), known(before)).changes
    assert step.announced is None
    assert step.committed == replace(
        before.record, state="gone", leaving=(Version("v of a", 1),), unfinished=True
    )


OLD_READERS = Access.to(["group:a"])


@pytest.mark.parametrize(
    ("change", "steps"),
    [
        # Chunks must be found by more readers before the commit, and by fewer only after it.
        ({"access": Access.to(["group:a", "group:x"])}, "announced, committed, finished"),
        ({"access": FINANCE}, "announced, committed, finished"),
        ({"sets": frozenset({"new"})}, "announced, committed, finished"),
        ({"access": NOBODY}, "committed, finished"),
        ({"sets": frozenset()}, "committed, finished"),
        ({"hidden": True}, "committed, finished"),
        ({"boost": 2.0}, "committed, finished"),
        # No label of the chunks changes.
        ({"access": OLD_READERS}, "finished"),
        ({"hidden": False}, "finished"),
        ({}, "finished"),
    ],
)
def test_an_amendment_takes_as_many_steps_as_it_needs(change: dict[str, Any], steps: str) -> None:
    before = held("a", "one", sets=frozenset({"old"}), access=OLD_READERS)
    (step,) = plan_writes(items(Amend(document_id="a", **change)), known(before)).changes
    announced = replace(before.record, unfinished=True) if "announced" in steps else None
    assert step.announced == announced
    assert step.committed == replace(before.record, **change, unfinished="committed" in steps)


def test_what_amends_a_hidden_document_touches_no_chunks() -> None:
    before = held("a", "one", hidden=True)
    (step,) = plan_writes(items(Amend(document_id="a", access=FINANCE)), known(before)).changes
    assert (step.announced, step.committed.unfinished) == (None, False)
    assert step.committed.access == FINANCE


def test_in_between_chunks_are_found_by_those_before_and_those_after() -> None:
    before = held("a", "one", sets=frozenset({"old"})).record
    after = replace(before, access=FINANCE, sets=frozenset({"new"}), boost=3.0)
    everybody = frozenset({"public", "group:finance"})
    assert combine_labels(before, after) == ChunkLabels(
        readers=everybody, sets=frozenset({"old", "new"}), boost=3.0
    )


def test_what_was_written_adds_up() -> None:
    one = Written(replaced=1, chunks=2, stale=("a",))
    other = Written(chunks=3, deleted=4, amended=5, stale=("b",), missing=("c",))
    assert one + other == Written(
        replaced=1, chunks=5, deleted=4, amended=5, stale=("a", "b"), missing=("c",)
    )


def test_a_finished_record_is_the_same_with_nothing_left() -> None:
    record: DocumentRecord = held("a", "one").record
    assert replace(record, leaving=(Version("v", 1),), unfinished=True).finished() == record


class Clock:
    now = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def seen(sequence: int, name: str = "a") -> StoredRecord:
    record = DocumentRecord(
        id=name, state="coming", generation=1, content_hash="", version=Version("", 0)
    )
    return StoredRecord(record, sequence, 1)


def test_a_record_that_does_not_change_is_abandoned_after_the_grace(clock: Clock) -> None:
    watch = IdleWatch(1.0)
    actual = []
    for clock.now in (0.0, 0.5, 0.9, 1.0, 2.0):
        actual.append(watch.is_abandoned(seen(1)))
    assert actual == [False, False, False, True, True]


def test_every_change_is_a_sign_of_life(clock: Clock) -> None:
    watch = IdleWatch(1.0)
    for sequence in range(20):
        clock.now += 0.9
        assert not watch.is_abandoned(seen(sequence))


def test_documents_are_watched_separately(clock: Clock) -> None:
    watch = IdleWatch(1.0)
    assert not watch.is_abandoned(seen(1, "a"))
    clock.now = 1.0
    assert not watch.is_abandoned(seen(1, "b"))
    assert watch.is_abandoned(seen(1, "a"))


def test_who_loses_a_document_waits_twice_as_long_for_it_the_next_time(clock: Clock) -> None:
    watch = IdleWatch(1.0)
    watch.note_lost(["a", "a"])
    assert not watch.is_abandoned(seen(1, "a"))
    clock.now = 3.9
    assert not watch.is_abandoned(seen(1, "a"))
    clock.now = 4.0
    assert watch.is_abandoned(seen(1, "a"))
