"""Processes that are kept running, and what ends them."""

import signal
import threading
import time
from itertools import pairwise

import pytest

from backend.cli.supervised_processes import SupervisedProcess, supervise, until_signalled


def _never() -> None:
    raise AssertionError("no process is started here")


class Dead:
    """A process that has ended."""

    pid, exitcode, sentinel = 1, -9, -1

    def is_alive(self) -> bool:
        return False

    def close(self) -> None:
        """There is nothing of it."""


def test_a_process_that_dies_is_started_again_later_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, started = [0.0], list[float]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    class Fragile(SupervisedProcess):
        def _start(self) -> None:
            started.append(now[0])
            self.process = Dead()  # type: ignore[assignment]
            self._began = now[0]

    kept = Fragile("index worker", _never)
    for second in range(200):
        now[0] = float(second)
        kept.keep_up()
    # Each dies at once, which is noticed a second later: 2, 4, 8, … s, and never more than a minute.
    assert [later - before for before, later in pairwise(started)] == [
        3.0, 5.0, 9.0, 17.0, 33.0, 61.0, 61.0,
    ]  # fmt: skip


def test_ctrl_c_ends_it_and_handlers_are_those_of_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with until_signalled() as stopping:
        assert not stopping.is_set()
        signal.raise_signal(signal.SIGINT)
        assert stopping.is_set()
    assert signal.getsignal(signal.SIGINT) is before


def test_nothing_is_left_when_it_is_asked_to_end_before_it_began() -> None:
    stopping = threading.Event()
    stopping.set()
    kept = SupervisedProcess("index worker", _never)
    supervise([kept], stopping, grace=1)
    assert kept.process is None
