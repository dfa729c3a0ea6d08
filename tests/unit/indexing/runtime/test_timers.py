"""Calls at a given time."""

import multiprocessing
import threading
import time
from queue import SimpleQueue

import pytest

from indexing.runtime.timers import Timers, call_at


def test_each_is_called_at_its_time_in_order() -> None:
    timers, called, done = Timers(), list[str](), threading.Event()
    now = time.monotonic()
    timers.call_at(now + 0.10, done.set)
    timers.call_at(now + 0.06, lambda: called.append("second"))
    timers.call_at(now + 0.02, lambda: called.append("first"))
    timers.call_at(now - 1.0, lambda: called.append("past"))
    assert done.wait(5)
    assert called == ["past", "first", "second"]
    assert time.monotonic() >= now + 0.10


def test_a_cancelled_one_is_not_called() -> None:
    timers, called, done = Timers(), list[str](), threading.Event()
    now = time.monotonic()
    timers.call_at(now + 0.02, lambda: called.append("cancelled")).cancel()
    timers.call_at(now + 0.04, done.set)
    assert done.wait(5)
    assert called == []


def test_one_that_raises_is_reported_and_does_not_keep_the_others_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported = SimpleQueue[type[BaseException]]()
    monkeypatch.setattr(threading, "excepthook", lambda one: reported.put(one.exc_type))
    timers, done, late = Timers(), threading.Event(), threading.Event()
    now = time.monotonic()
    timers.call_at(now + 0.04, done.set)
    timers.call_at(now + 0.02, lambda: 1 / 0)
    assert done.wait(5)
    timers.call_at(time.monotonic() + 0.01, late.set)
    assert late.wait(5)
    assert reported.get(timeout=5) is ZeroDivisionError


def test_one_thread_serves_all() -> None:
    timers = Timers()
    before = threading.active_count()
    set_ = [timers.call_at(time.monotonic() + 60, lambda: None) for _ in range(100)]
    assert threading.active_count() == before + 1
    for each in set_:
        each.cancel()


def test_a_forked_process_has_timers_of_its_own() -> None:
    call_at(time.monotonic() + 60, lambda: None)
    process = multiprocessing.get_context("fork").Process(target=_wait_for_timer)
    process.start()
    process.join(10)
    assert process.exitcode == 0


def _wait_for_timer() -> None:
    rung = threading.Event()
    call_at(time.monotonic() + 0.01, rung.set)
    assert rung.wait(5)
