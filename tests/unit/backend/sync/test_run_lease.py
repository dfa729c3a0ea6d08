"""What a worker says when it ends, also to a database that is away for a moment."""

import threading
import time
from datetime import timedelta

import pytest

from backend.sync import run_lease
from backend.sync.run_lease import Bound, Pulse, Stopped, is_mistake, surely, told
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.runtime.deadline import DeadlineExceededError

SOON = 30.0


class Away:
    """A database that does not answer so many times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.asked = 0
        self.answered = threading.Event()

    def tell(self) -> None:
        self.asked += 1
        if self.asked <= self.times:
            raise TemporarilyUnavailableError(
                "The database does not answer.", retry_after=timedelta(seconds=10)
            )
        self.answered.set()


def test_a_word_is_said_at_once_or_as_soon_as_it_can_be_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_lease, "BEAT", 0.01)
    there, away = Away(0), Away(3)
    surely(there.tell)
    assert there.asked == 1
    surely(away.tell)
    assert away.answered.wait(SOON)
    assert away.asked == 4


def test_after_the_lease_is_over_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lease, "BEAT", 0.01)
    away = Away(1_000_000)
    surely(away.tell, lease=timedelta(seconds=0.1))
    (thread,) = (one for one in threading.enumerate() if one.name == "telling")
    thread.join(SOON)
    assert not thread.is_alive()
    assert 1 < away.asked <= 11


def test_a_pulse_rings_for_those_of_other_processes() -> None:
    rung: list[int] = []
    pulse = Pulse(look=0.01, ring=lambda: rung.append(1))
    pulse.wait()
    pulse.notify()
    assert rung == [1]


def test_looks_are_the_rarer_the_longer_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.05, 0.1, 0.2 and then 0.25 seconds; and from the start again after a change."""
    waited: list[float] = []
    pulse = Pulse(look=0.05)
    looks = pulse.looks()

    def waits(changes: int, seconds: float) -> None:
        assert changes == pulse.changes
        waited.append(seconds)
        if len(waited) == 8:
            pulse.notify()

    monkeypatch.setattr(pulse, "wait_beyond", waits)
    for _ in range(10):
        looks.wait()
    assert waited == [0.05, 0.1, 0.2, 0.25, 0.25, 0.25, 0.25, 0.25, 0.05, 0.1]


def test_a_change_between_two_looks_is_not_waited_for() -> None:
    pulse = Pulse(look=SOON)
    looks = pulse.looks()
    began = time.monotonic()
    for _ in range(3):
        pulse.notify()
        looks.wait()
    assert time.monotonic() - began < SOON


def test_a_change_ends_a_wait() -> None:
    pulse = Pulse(look=SOON)
    looks = pulse.looks()
    timer = threading.Timer(0.05, pulse.notify)
    timer.start()
    began = time.monotonic()
    looks.wait()
    assert pulse.changes == 1
    assert time.monotonic() - began < SOON
    timer.join()


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (KeyError("tags"), True),
        (DeadlineExceededError("late"), True),
        (Stopped(), False),
        (ActionRequiredError("Mend it."), False),
        (TemporarilyUnavailableError("Later.", retry_after=timedelta(0)), False),
        (KeyboardInterrupt(), False),
        (GeneratorExit(), False),
    ],
)
def test_a_mistake_is_what_nobody_has_named(error: BaseException, is_one: bool) -> None:  # noqa: FBT001
    assert is_mistake(error) is is_one


def test_a_mistake_is_told_in_one_line_that_is_not_too_long() -> None:
    words = told(ValueError("a\nb " + "c" * 1000))
    assert words.startswith("A mistake in the program (ValueError: a b ccc")
    assert "\n" not in words
    assert len(words) < 400
    assert "too slow" in told(DeadlineExceededError("late"))


def test_a_thread_that_was_given_up_has_a_thirtieth_more() -> None:
    assert Bound(still=timedelta(minutes=15)).grace == 30
