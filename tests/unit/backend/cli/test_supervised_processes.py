"""Processes that are kept running, and what ends them."""

import signal
import threading
import time
from itertools import pairwise
from pathlib import Path

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


def _supervise_until(sign: Path, process: SupervisedProcess, grace: float) -> None:
    """Supervise a process until it has made a file."""
    stopping = threading.Event()

    def stop_when_it_is_made() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end and not sign.is_file():
            time.sleep(0.05)
        stopping.set()

    threading.Thread(target=stop_when_it_is_made, daemon=True).start()
    supervise([process], stopping, grace)


def _note_mask(folder: Path) -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    draft = folder / "draft"
    draft.write_text(str(signal.SIGINT in blocked), encoding="utf-8")
    draft.rename(folder / "blocked")
    while True:
        time.sleep(60)


@pytest.mark.soak("slow")
def test_ctrl_c_of_a_terminal_reaches_the_supervisor_alone_which_ends_the_process(
    tmp_path: Path,
) -> None:
    kept = SupervisedProcess("sleeper", _note_mask, (tmp_path,))
    _supervise_until(tmp_path / "blocked", kept, grace=60)
    assert (tmp_path / "blocked").read_text(encoding="utf-8") == "True"
    assert kept.process is not None
    assert kept.process.exitcode == -signal.SIGTERM
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())


@pytest.mark.soak("slow")
def test_a_process_that_does_not_end_is_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = SupervisedProcess("deaf", _ignore_sigterm, (tmp_path,))
    _supervise_until(tmp_path / "deaf", kept, grace=0.1)
    assert kept.process is not None
    assert kept.process.exitcode == -signal.SIGKILL
    assert "deaf has not ended in time and is killed." in caplog.text


def _ignore_sigterm(folder: Path) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (folder / "deaf").touch()
    while True:
        time.sleep(60)
