"""What a worker says when it ends, also to a database that is away for a moment."""

import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import select

from backend.store.database import Database
from backend.store.documents import batches
from backend.store.schema.tables import batches as rows
from backend.store.sync import run_transitions, runs
from backend.store.sync.runs import Process, Run, RunEndedError
from backend.sync import run_lease
from backend.sync.run_lease import (
    ChangeNotifier,
    Heartbeat,
    StallLimit,
    StoppedError,
    describe_error,
    is_bug,
    is_dead,
    is_going_on,
    is_gone,
    report_reliably,
    this_process,
)
from connectors.connector import Deletion
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.ingestion.batching import ClaimedBatch
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
    runs.enter_stage(database, run, "indexing")
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


class Clock:
    """The clock of a heartbeat; a pause of it passes at once."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(run_lease, "time", clock)
    return clock


def test_progress_postpones_the_end_of_a_run(tmp_path: Path, clock: Clock) -> None:
    database = store_with(tmp_path, "desk").database
    run = run_transitions.begin(database, "desk", "prune", this_process(), is_gone)
    stuck: list[threading.Thread] = []
    limit = StallLimit(still=timedelta(minutes=2), stuck=stuck.append)
    heartbeat = Heartbeat(database, run, bound=limit)
    heartbeat._over.set()  # gives up without grace
    for _ in range(3):
        clock.now += 120
        heartbeat._beat()
        heartbeat.record_progress()
    heartbeat.check()
    found = runs.find(database, run)
    assert found.state == "running"
    assert found.lease_until is not None
    clock.now += 120.1
    heartbeat._beat()
    reason = "Nothing moved for 2 minutes while the work began."
    with pytest.raises(RunEndedError, match=reason):
        heartbeat.check()
    assert runs.find(database, run).error == reason
    assert stuck == []


def test_a_hung_worker_without_a_run_postpones_its_batches_with_the_reason(
    tmp_path: Path, clock: Clock
) -> None:
    database = store_with(tmp_path, "desk").database
    run, held = _claimed(database)
    heartbeat = Heartbeat(database, bound=StallLimit(still=timedelta(minutes=2)))
    heartbeat._over.set()  # gives up without grace
    heartbeat.add(held)
    heartbeat.record_progress("a.md was read")
    clock.now += 121
    heartbeat._beat()
    found = runs.find(database, run)
    reason = "Nothing moved for 2 minutes while a.md was read."
    assert (found.state, found.waiting_for) == ("running", reason)
    assert batches.claim(database, this_process(), is_dead) is None


def test_without_a_limit_a_run_may_stand_still(tmp_path: Path, clock: Clock) -> None:
    database = store_with(tmp_path, "desk").database
    run = run_transitions.begin(database, "desk", "prune", this_process(), is_gone)
    heartbeat = Heartbeat(database, run)
    clock.now += 1e9
    heartbeat._beat()
    heartbeat.check()
    assert heartbeat._pause() == 2
    assert Heartbeat(database, bound=StallLimit())._pause() == 2
    assert Heartbeat(database, bound=StallLimit(still=timedelta(seconds=5)))._pause() == 1


def test_a_heartbeat_renews_what_is_held_and_forgets_what_was_taken(tmp_path: Path) -> None:
    database = store_with(tmp_path, "desk").database
    run = run_transitions.begin(database, "desk", "incremental", this_process(), is_gone)
    runs.enter_stage(database, run, "indexing")
    for name in ("a", "b"):
        batches.save(database, run, [Deletion(name)], None)
    first, second = (batches.claim(database, this_process(), is_dead) for _ in range(2))
    assert first is not None
    assert second is not None
    heartbeat = Heartbeat(database, run, lease=timedelta(hours=1))
    heartbeat.add(first)
    heartbeat.add(second)
    assert heartbeat.held() == {(first.number, first.fence), (second.number, second.fence)}
    batches.release(database, {(first.number, first.fence)})
    before = datetime.now(UTC)
    heartbeat._beat()
    assert heartbeat.held() == {(second.number, second.fence)}
    assert _lease_of(database, second.number) >= before + timedelta(hours=1)
    lease = runs.find(database, run).lease_until
    assert lease is not None
    assert before + timedelta(hours=1) <= lease <= datetime.now(UTC) + timedelta(hours=1)


def _lease_of(database: Database, batch: int) -> datetime:
    with database.reading() as connection:
        found = connection.scalar(select(rows.c.lease_until).where(rows.c.id == batch))
    assert isinstance(found, datetime)
    return found


def _claimed(database: Database) -> tuple[int, ClaimedBatch]:
    run = run_transitions.begin(database, "desk", "incremental", this_process(), is_gone)
    runs.enter_stage(database, run, "indexing")
    batches.save(database, run, [Deletion("desk:a")], None)
    held = batches.claim(database, this_process(), is_dead)
    assert held is not None
    return run, held


def _fail(database: Database, run: int, held: ClaimedBatch, error: Exception) -> None:
    with Heartbeat(database, run) as heartbeat:
        heartbeat.add(held)
        raise error


def test_what_is_held_at_the_end_is_given_back(tmp_path: Path) -> None:
    database = store_with(tmp_path, "desk").database
    run, held = _claimed(database)
    with Heartbeat(database, run) as heartbeat:
        heartbeat.add(held)
    again = batches.claim(database, this_process(), is_dead)
    assert again is not None
    assert (again.number, again.fence) == (held.number, held.fence + 1)
    with pytest.raises(StoppedError):
        _fail(database, run, again, StoppedError())
    assert batches.claim(database, this_process(), is_dead) is not None
    assert runs.find(database, run).waiting_for is None


def test_after_a_bug_what_is_held_waits_with_the_reason(tmp_path: Path) -> None:
    database = store_with(tmp_path, "desk").database
    run, held = _claimed(database)
    with pytest.raises(KeyError):
        _fail(database, run, held, KeyError("tags"))
    assert batches.claim(database, this_process(), is_dead) is None
    assert runs.find(database, run).waiting_for == "Internal error (KeyError: 'tags'). See the log."


@pytest.mark.parametrize("error", [KeyError("tags"), StoppedError()])
def test_what_is_given_back_is_reported_within_the_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    leases: list[timedelta] = []

    def report(back: Callable[[], object], lease: timedelta) -> None:
        back()
        leases.append(lease)

    monkeypatch.setattr(run_lease, "report_reliably", report)
    database = store_with(tmp_path, "desk").database
    _, held = _claimed(database)
    heartbeat = Heartbeat(database, lease=timedelta(seconds=7))
    heartbeat.add(held)
    heartbeat._thread.start()
    heartbeat.__exit__(type(error), error, None)
    assert leases == [timedelta(seconds=7)]
    assert not held.is_current()


def test_a_run_that_was_ended_ends_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lease, "BEAT_SECONDS", 0.0)
    database = store_with(tmp_path, "desk").database
    run = run_transitions.begin(database, "desk", "prune", this_process(), is_gone)
    run_transitions.stop(database, "desk", "cancelled")
    heartbeat = Heartbeat(database, run)
    heartbeat._go_on()
    with pytest.raises(RunEndedError, match="cancelled"):
        heartbeat.check()


@pytest.mark.parametrize(
    "error",
    [
        TemporarilyUnavailableError("Away.", retry_after=timedelta(0)),
        ActionRequiredError("The disk is full."),
    ],
)
def test_a_heartbeat_that_fails_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    heartbeat = Heartbeat(store_with(tmp_path).database, bound=StallLimit(still=timedelta(0)))
    beats: list[int] = []

    def beat() -> None:
        beats.append(len(beats))
        if len(beats) == 3:
            heartbeat._over.set()
        raise error

    monkeypatch.setattr(heartbeat, "_beat", beat)
    heartbeat._go_on()
    assert beats == [0, 1, 2]
    heartbeat.check()


def test_who_is_to_stop_notices_it_in_its_work(tmp_path: Path) -> None:
    stopping = threading.Event()
    heartbeat = Heartbeat(store_with(tmp_path).database, stopping=stopping)
    heartbeat.check()
    stopping.set()
    with pytest.raises(StoppedError):
        heartbeat.check()


def test_a_report_is_repeated_for_as_long_as_the_lease(clock: Clock) -> None:
    away = Away(1_000_000)
    run_lease._retry_report(away.tell, timedelta(seconds=60))
    assert clock.pauses == [2.0] * 30
    assert away.asked == 30
    heard = Away(2)
    run_lease._retry_report(heard.tell, timedelta(seconds=60))
    assert heard.asked == 3


def test_a_report_that_waits_does_not_keep_its_process_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        started.append(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    report_reliably(Away(1).tell, timedelta(seconds=7))
    (thread,) = started
    assert (thread.name, thread.daemon) == ("report", True)
    heartbeat = Heartbeat(cast("Database", None))
    assert (heartbeat._thread.name, heartbeat._thread.daemon) == ("heartbeat", True)


def _run(holder: Process, **columns: Any) -> Run:
    now = datetime.now(UTC)
    values: dict[str, Any] = {
        "id": 1,
        "source": "desk",
        "kind": "prune",
        "state": "running",
        "stage": "listing",
        "item": None,
        "counts": {},
        "error": None,
        "holder": holder,
        "started_at": now,
        "renewed_at": now,
        "finished_at": None,
    }
    return Run(**values | columns)


ME = this_process()
ELSEWHERE = replace(ME, host=f"not {ME.host}")
NOBODY = replace(ME, number=2**22 + 1)
"""Above the greatest number of a process."""
MINUTE = timedelta(minutes=1)


def test_a_process_is_dead_once_its_number_is_free_or_another_has_it() -> None:
    me = this_process()
    assert (me.host, me.number) == (socket.gethostname(), os.getpid())
    assert me.started.isdigit()
    assert not is_dead(ME)
    assert is_dead(replace(ME, started="1"))
    assert is_dead(NOBODY)
    assert is_dead(replace(NOBODY, started=""))
    assert not is_dead(replace(NOBODY, host=ELSEWHERE.host))


def test_a_process_of_another_account_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int, signal: int) -> None:
        assert (number, signal) == (ME.number, 0)
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert not is_dead(ME)


def test_a_start_time_is_read_past_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = " ".join(map(str, range(3, 53)))

    def read_text(path: Path, encoding: str, errors: str) -> str:
        assert (str(path), encoding, errors) == ("/proc/7/stat", "utf-8", "replace")
        return f"7 (a) b) c) {numbers}"

    monkeypatch.setattr(Path, "read_text", read_text)
    assert run_lease._start_time(7) == "22"
    monkeypatch.undo()
    assert run_lease._start_time(NOBODY.number) == ""


@pytest.mark.parametrize(
    ("holder", "lease", "silence", "is_lost"),
    [
        (ME, MINUTE, timedelta(0), False),
        (ME, -MINUTE, timedelta(0), True),
        (ME, None, timedelta(days=1), False),
        (NOBODY, None, timedelta(0), True),
        (NOBODY, MINUTE, timedelta(0), True),
        (ELSEWHERE, MINUTE, timedelta(days=1), False),
        (ELSEWHERE, -MINUTE, timedelta(0), True),
        (ELSEWHERE, None, 9 * MINUTE, False),
        (ELSEWHERE, None, 11 * MINUTE, True),
    ],
)
def test_a_run_is_lost_with_its_process_or_its_lease(
    holder: Process,
    lease: timedelta | None,
    silence: timedelta,
    is_lost: bool,  # noqa: FBT001
) -> None:
    now = datetime.now(UTC)
    run = _run(holder, lease_until=lease and now + lease, renewed_at=now - silence)
    assert is_gone(run) is is_lost
    assert is_going_on(run) is not is_lost
    assert not is_going_on(replace(run, state="waiting"))


def test_what_a_bug_is_called() -> None:
    late = "It timed out: a service, such as the embedding endpoint, is too slow."
    assert describe_error(DeadlineExceededError("late")) == late
    assert describe_error(ValueError("x")) == "Internal error (ValueError: x). See the log."
    long = describe_error(ValueError("c" * 1000))
    assert long == f"Internal error (ValueError: {'c' * 288}). See the log."


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.3, "0.3 seconds"), (119, "119 seconds"), (120, "2 minutes"), (3600, "60 minutes")],
)
def test_a_time_is_given_in_minutes_from_two_on(seconds: float, words: str) -> None:
    assert run_lease._minutes(timedelta(seconds=seconds)) == words


def test_a_wait_ends_with_a_later_change_only() -> None:
    notifier = ChangeNotifier()
    assert notifier.changes == 0
    notifier.notify()
    notifier.wait_beyond(1, 0.01)
    notifier.wait_beyond(0, 1e6)
    notifier.notify()
    assert notifier.changes == 2
    assert notifier.looks()._first == 0.05
