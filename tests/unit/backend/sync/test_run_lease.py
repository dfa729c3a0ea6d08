"""What a worker says when it ends, also to a database that is away for a moment."""

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backend.store import batches, run_progress, run_transitions, runs
from backend.store.runs import RunEndedError
from backend.sync import run_lease
from backend.sync.run_lease import (
    ChangeNotifier,
    Heartbeat,
    StallLimit,
    StoppedError,
    describe_error,
    is_bug,
    is_dead,
    is_gone,
    report_reliably,
    this_process,
)
from connectors.connector import Deletion
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.runtime.deadline import DeadlineExceededError
from tests.support.store import store_with

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
    monkeypatch.setattr(run_lease, "BEAT_SECONDS", 0.01)
    there, away = Away(0), Away(3)
    report_reliably(there.tell)
    assert there.asked == 1
    report_reliably(away.tell)
    assert away.answered.wait(SOON)
    assert away.asked == 4


def test_after_the_lease_is_over_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lease, "BEAT_SECONDS", 0.01)
    away = Away(1_000_000)
    report_reliably(away.tell, lease=timedelta(seconds=0.1))
    (thread,) = (one for one in threading.enumerate() if one.name == "report")
    thread.join(SOON)
    assert not thread.is_alive()
    assert 1 < away.asked <= 11


def test_a_pulse_rings_for_those_of_other_processes() -> None:
    rung: list[int] = []
    notifier = ChangeNotifier(look=0.01, ring=lambda: rung.append(1))
    notifier.wait()
    notifier.notify()
    assert rung == [1]


def test_looks_are_the_rarer_the_longer_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.05, 0.1, 0.2 and then 0.25 seconds; and from the start again after a change."""
    waited: list[float] = []
    notifier = ChangeNotifier(look=0.05)
    looks = notifier.looks()

    def waits(changes: int, seconds: float) -> None:
        assert changes == notifier.changes
        waited.append(seconds)
        if len(waited) == 8:
            notifier.notify()

    monkeypatch.setattr(notifier, "wait_beyond", waits)
    for _ in range(10):
        looks.wait()
    assert waited == [0.05, 0.1, 0.2, 0.25, 0.25, 0.25, 0.25, 0.25, 0.05, 0.1]


def test_a_change_between_two_looks_is_not_waited_for() -> None:
    notifier = ChangeNotifier(look=SOON)
    looks = notifier.looks()
    began = time.monotonic()
    for _ in range(3):
        notifier.notify()
        looks.wait()
    assert time.monotonic() - began < SOON


def test_a_change_ends_a_wait() -> None:
    notifier = ChangeNotifier(look=SOON)
    looks = notifier.looks()
    timer = threading.Timer(0.05, notifier.notify)
    timer.start()
    began = time.monotonic()
    looks.wait()
    assert notifier.changes == 1
    assert time.monotonic() - began < SOON
    timer.join()


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (KeyError("tags"), True),
        (DeadlineExceededError("late"), True),
        (StoppedError(), False),
        (ActionRequiredError("Mend it."), False),
        (TemporarilyUnavailableError("Later.", retry_after=timedelta(0)), False),
        (KeyboardInterrupt(), False),
        (GeneratorExit(), False),
    ],
)
def test_a_mistake_is_what_nobody_has_named(error: BaseException, is_one: bool) -> None:  # noqa: FBT001
    assert is_bug(error) is is_one


def test_a_mistake_is_reported_in_one_line_that_is_not_too_long() -> None:
    words = describe_error(ValueError("a\nb " + "c" * 1000))
    assert words.startswith("Internal error (ValueError: a b ccc")
    assert "\n" not in words
    assert len(words) < 400
    assert "too slow" in describe_error(DeadlineExceededError("late"))


def test_a_thread_that_was_given_up_has_a_thirtieth_more() -> None:
    assert StallLimit(still=timedelta(minutes=15)).grace == 30


def test_a_hung_run_is_requeued_with_the_reason_and_its_batches_are_postponed(
    tmp_path: Path,
) -> None:
    database = store_with(tmp_path, "desk").database
    run = run_transitions.begin(database, "desk", "incremental", this_process(), is_gone)
    run_progress.enter_stage(database, run, "indexing")
    batches.save(database, run, [Deletion("desk:a")], None)
    held = batches.claim(database, this_process(), is_dead)
    assert held is not None
    stuck: list[threading.Thread] = []
    given_up = threading.Event()

    def note(thread: threading.Thread) -> None:
        stuck.append(thread)
        given_up.set()

    limit = StallLimit(still=timedelta(seconds=0.3), stuck=note)
    reason = "Nothing moved for 0.3 seconds while a.md was read."
    before = datetime.now(UTC)
    with Heartbeat(database, run, bound=limit) as heartbeat:
        heartbeat.add(held)
        heartbeat.record_progress("a.md was read")
        assert given_up.wait(SOON)
        with pytest.raises(RunEndedError, match=reason) as ended:
            heartbeat.check()
        assert ended.value.state == "interrupted"
        assert heartbeat.held() == set()
    assert stuck == [threading.current_thread()]
    waiting, hung = runs.history(database, "desk")
    assert (hung.id, hung.state, hung.error) == (run, "interrupted", reason)
    assert (waiting.state, waiting.kind, waiting.waiting_for) == ("waiting", "incremental", reason)
    assert waiting.next_try is not None
    assert waiting.next_try > before + timedelta(seconds=50)
    assert not held.is_current()
    assert batches.claim(database, this_process(), is_dead) is None


def test_progress_postpones_the_end_of_a_run(tmp_path: Path) -> None:
    database = store_with(tmp_path, "desk").database
    run = run_transitions.begin(database, "desk", "prune", this_process(), is_gone)
    limit = StallLimit(still=timedelta(seconds=2))
    with Heartbeat(database, run, bound=limit) as heartbeat:
        for _ in range(6):
            heartbeat.record_progress()
            time.sleep(0.5)
        heartbeat.check()
    found = runs.find(database, run)
    assert (found.state, found.lease_until is not None) == ("running", True)
