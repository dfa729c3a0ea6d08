"""Work that may wait does so while more urgent work is under way, but not for ever."""

import threading
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from indexing.runtime import priority_gate
from indexing.runtime.priority_gate import PriorityGate, WaitingLine

SOON = 30.0


def start(count: int, call: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=call) for _ in range(count)]
    for each in threads:
        each.start()
    return threads


def join(threads: list[threading.Thread]) -> None:
    for each in threads:
        each.join(SOON)


def test_who_may_wait_does_so_until_the_last_urgent_work_has_ended() -> None:
    gate, gone_on = PriorityGate(), threading.Event()
    line = WaitingLine(gate)

    def wait() -> None:
        line.wait(SOON)
        gone_on.set()

    with gate.hold():
        with gate.hold():
            threads = start(1, wait)
        assert not gone_on.wait(0.05)
    assert gone_on.wait(SOON)
    join(threads)


def test_where_nothing_is_urgent_nobody_waits() -> None:
    gate = PriorityGate()
    with gate.hold():
        pass
    line, began = WaitingLine(gate), time.monotonic()
    for _ in range(1_000):
        line.wait(SOON)
    assert time.monotonic() - began < 1_000 * priority_gate.SPACING / 2


def test_while_something_is_always_urgent_one_after_the_other_goes_on() -> None:
    gate, gone_on = PriorityGate(), list[float]()
    line = WaitingLine(gate)

    def wait() -> None:
        line.wait(0.05)
        gone_on.append(time.monotonic())

    with gate.hold():
        join(start(5, wait))
    assert len(gone_on) == 5
    assert all(later - before >= 0.045 for before, later in pairwise(gone_on))


def test_urgent_work_that_comes_behind_the_first_of_a_line_goes_before_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(priority_gate, "SPACING", 0.6)
    gate, gone_on = PriorityGate(), threading.Semaphore(0)
    line = WaitingLine(gate)

    def wait() -> None:
        line.wait(SOON)
        gone_on.release()

    with gate.hold():
        threads = start(3, wait)
        assert not gone_on.acquire(timeout=0.05)
    assert gone_on.acquire(timeout=SOON)
    assert not gone_on.acquire(timeout=0.1)
    with gate.hold():
        assert not gone_on.acquire(timeout=0.8)
    join(threads)
    assert [gone_on.acquire(timeout=0) for _ in threads] == [True, True, False]


def test_each_line_has_a_turn_of_its_own() -> None:
    gate, gone_on = PriorityGate(), threading.Event()
    slow, quick = WaitingLine(gate), WaitingLine(gate)

    def wait() -> None:
        quick.wait(0.01)
        gone_on.set()

    with gate.hold():
        threads = start(1, lambda: slow.wait(SOON)) + start(1, wait)
        assert gone_on.wait(SOON)
    join(threads)
