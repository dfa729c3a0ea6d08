"""Runs outlive the threads and processes that work on them, and several share these fairly."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from backend.access.roles import Role
from backend.research.dependencies import ResearchDependencies
from backend.research.events import PlanMade, TaskStarted
from backend.research.record.plan import ResearchPlan
from backend.research.record.record_json import read_record, write_record
from backend.research.record.request import ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.runs.learned_items import keep_learned
from backend.research.runs.research_workers import ResearchWork, ResearchWorkers
from backend.research.runs.run_events import decode_portions
from backend.research.runs.run_journal import ResearchLostError
from backend.research.runs.run_steps import (
    ASKER_GONE,
    HISTORY_WITHDRAWN,
    RunRights,
    RunStepper,
    work_on,
)
from backend.schemas.research_events import encode_research_event
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from backend.store.research import knowledge, research_leases, research_runs
from backend.store.research.research_leases import LEASE, ClaimLimits, ResearchProgress
from backend.store.research.research_runs import NewResearch, ResearchRun
from backend.sync.run_lease import is_dead, this_process
from connectors.access import Readers
from connectors.errors import NotConfiguredError, TemporarilyUnavailableError
from tests.support.accounts import add_person
from tests.support.conversations import OWNER, own_no_memories
from tests.support.research_runs import add_run, claim, open_journal
from tests.support.research_world import ANN, QUESTION, ResearchWorld, research_world
from tests.support.scripted_model import Json, Reply, Request, Say

SOON = 60.0
_AWAY = TemporarilyUnavailableError("The index is away.", timedelta(seconds=0.1))
TASKS = 3
"""Of a run: two of its plan, and one more that the orchestrator asks for."""


class _KilledError(BaseException):
    """Stands for the end of a process."""


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


@pytest.fixture
def world() -> Iterator[ResearchWorld]:
    with research_world(seed=1) as served:
        yield served


def _add(
    database: Database, owner: ConversationOwner = OWNER, history: tuple[str, ...] = ()
) -> str:
    new = NewResearch(
        owner=owner,
        acting_as=("public",),
        conversation_id=None,
        project_id=None,
        question=QUESTION,
        confirms_plan=False,
        record=write_record(ResearchRecord(request=ResearchRequest(question=QUESTION))),
        history_document_ids=history,
    )
    return research_runs.add(database, new, datetime.now(UTC))


def _make_work(
    database: Database,
    world: ResearchWorld,
    at_once: int = 2,
    readers: Callable[[], Readers | None] = lambda: ANN,
) -> ResearchWork:
    @contextmanager
    def open_dependencies(run: ResearchRun, rights: RunRights) -> Iterator[ResearchDependencies]:
        del run
        yield world.dependencies(resolve_readers=rights.readers_now)

    def is_awaited(run: ResearchRun) -> bool:
        limits = ClaimLimits(at_once=at_once, is_dead=is_dead)
        return research_leases.is_awaited(database, run.owner, limits, datetime.now(UTC))

    stepper = RunStepper(
        open_dependencies=open_dependencies,
        find_rights=lambda _: RunRights(readers_now=readers, own_memories=own_no_memories),
        is_awaited=is_awaited,
        keep_learned=partial(keep_learned, database),
    )
    return ResearchWork(
        database=lambda: database,
        make_stepper=lambda: stepper,
        encode=encode_research_event,
        at_once=at_once,
    )


@contextmanager
def _working(work: ResearchWork) -> Iterator[ResearchWorkers]:
    workers = ResearchWorkers(work, lambda _: True, pause=0.02)
    workers.start()
    try:
        yield workers
    finally:
        assert workers.stop(SOON)


def _wait(database: Database, run_id: str, owner: ConversationOwner = OWNER) -> ResearchRun:
    end = time.monotonic() + SOON
    while (run := research_runs.get(database, owner, run_id).run).ended_at is None:
        assert time.monotonic() < end, run
        time.sleep(0.02)
    return run


def _list_names(database: Database, run_id: str, owner: ConversationOwner = OWNER) -> list[str]:
    found = research_runs.follow(database, owner, run_id, 0)
    stored = list(decode_portions(found.payloads))
    assert [one.number for one in stored] == list(range(1, len(stored) + 1))
    return [one.name for one in stored]


def _count_tasks(world: ResearchWorld) -> int:
    return len(world.model.of("task_report"))


def test_a_run_of_a_process_that_has_died_goes_on_at_its_last_finished_task(
    database: Database, world: ResearchWorld
) -> None:
    run_id = _add(database)
    claimed = claim(database, run_id)
    journal = open_journal(database, claimed)
    record = read_record(claimed.record).with_plan(ResearchPlan.of_questions(QUESTION.split("; ")))
    # What the process had come to when it was killed: one of two tasks, with its report.
    done = world.run(QUESTION.split("; ")[0]).reports[0]
    journal.emit(PlanMade(record.plan or ResearchPlan(())))
    record = record.with_report(done)
    journal.save(record)
    journal.emit(TaskStarted(record.pending_tasks[0]))
    world.model.asked.clear()
    now = datetime.now(UTC) + LEASE * 2
    late = research_leases.claim(database, run_id, this_process(), is_dead, now)
    assert late
    assert late.is_taken_over
    # It dies as well, before it has done anything.
    past = now - timedelta(days=1)
    research_leases.store(database, late.claim, ResearchProgress(), past)
    with pytest.raises(ResearchLostError):
        journal.save(record)
    with _working(_make_work(database, world)):
        run = _wait(database, run_id)
    assert (run.state, run.tasks_done) == ("done", TASKS)
    learned = knowledge.list_page(database, OWNER, None, None, 50)
    assert {one.run_id for one in learned} == {run_id}
    record = read_record(research_runs.get(database, OWNER, run_id).record)
    assert len(learned) == sum(len(one.knowledge) for one in record.reports) > 0
    assert _count_tasks(world) == TASKS - 1
    names = _list_names(database, run_id)
    assert names.count("resumed") == 1
    assert names[-1] == "done"


def test_what_was_learned_outlives_a_crash_before_and_after_it_is_kept(
    database: Database, world: ResearchWorld
) -> None:
    run_id = _add(database)
    work = _make_work(database, world)
    stepper = work.make_stepper()

    def die(run: ResearchRun, record: ResearchRecord) -> None:
        del run, record
        raise _KilledError

    def keep_and_die(run: ResearchRun, record: ResearchRecord) -> None:
        stepper.keep_learned(run, record)
        raise _KilledError

    for keep in (die, keep_and_die):
        claimed = claim(database, run_id)
        journal = open_journal(database, claimed)
        with pytest.raises(_KilledError):
            work_on(claimed, journal, replace(stepper, keep_learned=keep))
        assert research_runs.get(database, OWNER, run_id).run.ended_at is None
        past = datetime.now(UTC) - timedelta(days=1)
        research_leases.store(database, claimed.claim, ResearchProgress(), past)
    with _working(work):
        assert _wait(database, run_id).state == "done"
    learned = knowledge.list_page(database, OWNER, None, None, 50)
    record = read_record(research_runs.get(database, OWNER, run_id).record)
    assert len(learned) == sum(len(one.knowledge) for one in record.reports) > 0


def test_a_run_ends_with_its_report_where_what_it_learned_cannot_be_kept(
    database: Database, world: ResearchWorld, caplog: pytest.LogCaptureFixture
) -> None:
    run_id = _add(database)
    claimed = claim(database, run_id)
    stepper = _make_work(database, world).make_stepper()

    def fail(run: ResearchRun, record: ResearchRecord) -> None:
        raise ValueError(f"{run.id} has learned {len(record.reports)} things")

    work_on(claimed, open_journal(database, claimed), replace(stepper, keep_learned=fail))
    assert research_runs.get(database, OWNER, run_id).run.state == "done"
    assert "has learned was not kept" in caplog.text


def test_a_process_that_ends_gives_its_runs_to_another_one(
    database: Database, world: ResearchWorld
) -> None:
    run_id = _add(database)
    work = _make_work(database, world)
    with _working(work):
        end = time.monotonic() + SOON
        while not research_runs.get(database, OWNER, run_id).run.tasks_done:
            assert time.monotonic() < end
            time.sleep(0.005)
    left = research_runs.get(database, OWNER, run_id).run
    assert left.state in {"waiting", "done"}
    with _working(_make_work(database, world)):
        assert _wait(database, run_id).state == "done"
    assert _list_names(database, run_id)[-1] == "done"


@pytest.mark.soak("slow")
def test_two_processes_never_work_on_one_run_together(
    database: Database, world: ResearchWorld
) -> None:
    ids = [_add(database) for _ in range(3)]
    with _working(_make_work(database, world)), _working(_make_work(database, world)):
        assert {_wait(database, one).state for one in ids} == {"done"}
    for one in ids:
        names = _list_names(database, one)
        assert names.count("plan") == 1
        assert names.count("done") == 1
    assert _count_tasks(world) == TASKS * len(ids)


def test_a_run_gives_its_place_to_that_of_somebody_else(
    database: Database, world: ResearchWorld
) -> None:
    ann, bob = (
        ConversationOwner(add_person(database, f"{name}@example.com", Role.ADMIN).id)
        for name in ("ann", "bob")
    )
    anns, bobs = _add(database, ann), _add(database, bob)
    with _working(_make_work(database, world, at_once=1)):
        ended = [_wait(database, anns, ann), _wait(database, bobs, bob)]
    assert {run.state for run in ended} == {"done"}
    assert "state" in _list_names(database, anns, ann)
    stored = research_runs.follow(database, ann, anns, 0).payloads
    states = [one.data["state"] for one in decode_portions(stored) if one.name == "state"]
    assert states[:3] == ["running", "waiting", "running"]
    assert set(states[::2]) == {"running"}


def test_a_run_is_deleted_under_its_process(database: Database, world: ResearchWorld) -> None:
    run_id = _add(database)
    with _working(_make_work(database, world)):
        end = time.monotonic() + SOON
        while not research_runs.get(database, OWNER, run_id).run.tasks:
            assert time.monotonic() < end
            time.sleep(0.005)
        research_runs.remove(database, OWNER, run_id)
        other = _add(database)
        assert _wait(database, other).state == "done"


def test_who_has_no_account_any_more_gets_a_sentence(
    database: Database, world: ResearchWorld
) -> None:
    run_id = _add(database)
    with _working(_make_work(database, world, readers=lambda: None)):
        run = _wait(database, run_id)
    assert (run.state, run.problem, run.has_report) == ("failed", ASKER_GONE, False)
    assert world.model.asked == []


def test_history_that_may_not_be_read_any_more_is_not_used(
    database: Database, world: ResearchWorld
) -> None:
    run_id = _add(database, history=("wiki:gone",))
    with _working(_make_work(database, world)):
        run = _wait(database, run_id)
    assert (run.state, run.problem) == ("failed", HISTORY_WITHDRAWN)
    assert world.model.asked == []


def test_what_cannot_be_opened_and_what_is_broken_end_a_run_with_a_sentence(
    database: Database, world: ResearchWorld
) -> None:
    work = _make_work(database, world)
    errors = [NotConfiguredError("Research needs a language model."), ValueError("a bug")]

    @contextmanager
    def fail(run: ResearchRun, rights: RunRights) -> Iterator[ResearchDependencies]:
        del run, rights
        raise errors.pop()
        yield

    inner = work.make_stepper()
    stepper = replace(inner, open_dependencies=fail)
    broken = ResearchWork(
        database=work.database, make_stepper=lambda: stepper, encode=work.encode, at_once=1
    )
    ids = [_add(database), _add(database)]
    with _working(broken):
        problems = {_wait(database, one).problem for one in ids}
    assert problems == {
        "An internal error ended this research. Start it again.",
        "Research needs a language model.",
    }
    assert {_list_names(database, one)[-1] for one in ids} == {"failed"}


def test_a_run_that_fails_is_stored_with_the_reports_that_it_has(
    database: Database, world: ResearchWorld
) -> None:
    """Its last step is the one that fails, not the first of this process."""
    run_id = _add(database)
    now: list[Readers] = [ANN]

    def leave(values: Json, request: Request) -> Reply:
        del values, request
        now.clear()
        return Say("{}")

    world.model.steps["next_tasks"] = leave
    stepper = _make_work(database, world, readers=lambda: now[0] if now else None).make_stepper()
    claimed = claim(database, run_id)
    work_on(claimed, open_journal(database, claimed), stepper)
    stored = research_runs.get(database, OWNER, run_id)
    assert stored.run.state == "failed"
    assert len(read_record(stored.record).written_reports) == 2
    assert stored.run.tasks_done == 2


def test_a_run_outlives_that_a_service_is_away_for_a_moment(
    database: Database, world: ResearchWorld
) -> None:
    work = _make_work(database, world)
    inner, errors = work.make_stepper(), [_AWAY, _AWAY]

    @contextmanager
    def fail_first(run: ResearchRun, rights: RunRights) -> Iterator[ResearchDependencies]:
        if errors:
            raise errors.pop()
        with inner.open_dependencies(run, rights) as dependencies:
            yield dependencies

    stepper = replace(inner, open_dependencies=fail_first)
    late = ResearchWork(
        database=work.database, make_stepper=lambda: stepper, encode=work.encode, at_once=1
    )
    run_id = _add(database)
    with _working(late):
        assert _wait(database, run_id).state == "done"
    assert errors == []


def test_the_journal_stores_nothing_after_the_last_event(database: Database) -> None:
    run_id = add_run(database, OWNER)
    journal = open_journal(database, claim(database, run_id))
    research_runs.remove(database, OWNER, run_id)
    with pytest.raises(ResearchLostError):
        journal.save(ResearchRecord(request=ResearchRequest(question=QUESTION)))
    assert journal.interrupt.is_cancelled
