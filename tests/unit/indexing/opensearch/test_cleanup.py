"""When the writer of an unfinished record is taken for gone."""

import time

import pytest

from indexing.opensearch.cleanup import Patience
from indexing.opensearch.record_mapping import DocumentRecord, Held, Version


class Clock:
    now = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def seen(sequence: int, name: str = "a") -> Held:
    record = DocumentRecord(
        id=name, state="coming", generation=1, content_hash="", version=Version("", 0)
    )
    return Held(record, sequence, 1)


def test_a_record_that_does_not_change_is_abandoned_after_the_grace(clock: Clock) -> None:
    patience = Patience(1.0)
    told = []
    for clock.now in (0.0, 0.5, 0.9, 1.0, 2.0):
        told.append(patience.is_abandoned(seen(1)))
    assert told == [False, False, False, True, True]


def test_every_change_is_a_sign_of_life(clock: Clock) -> None:
    patience = Patience(1.0)
    for sequence in range(20):
        clock.now += 0.9
        assert not patience.is_abandoned(seen(sequence))


def test_documents_are_told_apart(clock: Clock) -> None:
    patience = Patience(1.0)
    assert not patience.is_abandoned(seen(1, "a"))
    clock.now = 1.0
    assert not patience.is_abandoned(seen(1, "b"))
    assert patience.is_abandoned(seen(1, "a"))


def test_who_loses_a_document_waits_twice_as_long_for_it_the_next_time(clock: Clock) -> None:
    patience = Patience(1.0)
    patience.lost(["a", "a"])
    assert not patience.is_abandoned(seen(1, "a"))
    clock.now = 3.9
    assert not patience.is_abandoned(seen(1, "a"))
    clock.now = 4.0
    assert patience.is_abandoned(seen(1, "a"))
