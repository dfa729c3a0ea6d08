"""Deadlines, and those who want no answer any more."""

import threading
import time

import pytest

from indexing.runtime.deadline import Deadline, DeadlineExceeded, Stop


def test_a_stop_ends_every_deadline_that_was_made_of_it() -> None:
    stop = Stop()
    deadline = Deadline.after(60, stop)
    part = deadline.earlier(30)
    assert 29 < part.left() <= 30
    stop.set()
    assert (deadline.left(), part.left()) == (0, 0)
    with pytest.raises(DeadlineExceeded):
        part.check()


def test_a_stop_wakes_who_sleeps() -> None:
    stop = Stop()
    threading.Timer(0.05, stop.set).start()
    began = time.monotonic()
    Deadline.after(60, stop).sleep(30)
    assert time.monotonic() - began < 10


def test_sleep_is_no_longer_than_what_is_left() -> None:
    began = time.monotonic()
    Deadline.after(0.05).sleep(30)
    Deadline.after(60).sleep(0.01)
    assert time.monotonic() - began < 10


def test_what_waits_on_a_stop_is_called_once() -> None:
    stop, called = Stop(), list[str]()
    with stop.calling(lambda: called.append("inside")):
        stop.set()
        stop.set()
    assert called == ["inside"]


def test_who_comes_late_is_called_at_once() -> None:
    stop, called = Stop(), list[str]()
    stop.set()
    with stop.calling(lambda: called.append("late")):
        assert called == ["late"]


def test_after_the_block_nobody_is_called() -> None:
    stop, called = Stop(), list[str]()
    with stop.calling(lambda: called.append("stop")):
        pass
    with Deadline.after(0.05).calling(lambda: called.append("time")):
        pass
    stop.set()
    time.sleep(0.1)
    assert called == []


@pytest.mark.parametrize("stop", [Stop(), None])
def test_the_end_of_the_time_is_called_out(stop: Stop | None) -> None:
    over = threading.Event()
    with Deadline.after(0.02, stop).calling(over.set):
        assert over.wait(10)


def test_a_stop_is_called_out_before_the_time_is_up() -> None:
    stop, over = Stop(), threading.Event()
    with Deadline.after(60, stop).calling(over.set):
        stop.set()
        assert over.is_set()
