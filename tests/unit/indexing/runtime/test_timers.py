"""Calls at a given time."""

import multiprocessing
import threading
import time

from indexing.runtime.timers import Alarms, alarm


def test_each_is_called_at_its_time_in_order() -> None:
    alarms, called, done = Alarms(), list[str](), threading.Event()
    now = time.monotonic()
    alarms.set(now + 0.10, done.set)
    alarms.set(now + 0.06, lambda: called.append("second"))
    alarms.set(now + 0.02, lambda: called.append("first"))
    alarms.set(now - 1.0, lambda: called.append("past"))
    assert done.wait(5)
    assert called == ["past", "first", "second"]
    assert time.monotonic() >= now + 0.10


def test_a_cancelled_one_is_not_called() -> None:
    alarms, called, done = Alarms(), list[str](), threading.Event()
    now = time.monotonic()
    alarms.set(now + 0.02, lambda: called.append("cancelled")).cancel()
    alarms.set(now + 0.04, done.set)
    assert done.wait(5)
    assert called == []


def test_one_thread_serves_all() -> None:
    alarms = Alarms()
    before = threading.active_count()
    set_ = [alarms.set(time.monotonic() + 60, lambda: None) for _ in range(100)]
    assert threading.active_count() == before + 1
    for each in set_:
        each.cancel()


def test_a_forked_process_has_alarms_of_its_own() -> None:
    alarm(time.monotonic() + 60, lambda: None)
    process = multiprocessing.get_context("fork").Process(target=_wait_for_alarm)
    process.start()
    process.join(10)
    assert process.exitcode == 0


def _wait_for_alarm() -> None:
    rung = threading.Event()
    alarm(time.monotonic() + 0.01, rung.set)
    assert rung.wait(5)
