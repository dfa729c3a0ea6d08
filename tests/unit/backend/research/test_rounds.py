"""Rounds: how many there are, what begins one, and how agents share what may be spent."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.research import task_pool
from backend.research.agent.run_task import BUDGET_ENDED
from backend.research.events import ResearchEvent, RoundDecided, TaskDone, TaskStarted
from backend.research.orchestration import choose_next_tasks
from backend.research.record.budget import ResearchBudget, Spent
from backend.research.record.plan import ResearchPlan
from backend.research.record.request import ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.task_pool import run_pending_tasks, share_budget
from connectors.access import Readers
from tests.support.research_world import ResearchWorld, research_world
from tests.support.scripted_model import Json, Request, Say

NAMES = ("Aster", "Birch", "Cedar", "Daisy", "Elder", "Fern")
FACTS = {f"kb:{name}": f"The {name} pump costs {10 + at} EUR." for at, name in enumerate(NAMES)}
QUESTION = "What does the Aster pump cost?"


@pytest.fixture
def world() -> Iterator[ResearchWorld]:
    with research_world(FACTS) as made:
        yield made


def make_record(*questions: str, **budget: float) -> ResearchRecord:
    limits = ResearchBudget(**budget)  # type: ignore[arg-type]
    request = ResearchRequest(question=QUESTION, budget=limits)
    return ResearchRecord(request=request, plan=ResearchPlan.of_questions(list(questions)))


def ask_on(*rounds: list[str]) -> "itertools.chain[Say]":
    said = [Say(json.dumps({"tasks": tasks, "reason": "More."})) for tasks in rounds]
    return itertools.chain(said, itertools.repeat(Say('{"tasks": ["Why?"]}')))


def decide(world: ResearchWorld, *rounds: list[str]) -> None:
    said = ask_on(*rounds)
    world.model.steps = {"next_tasks": lambda *_: next(said)}


def cite_one_more(world: ResearchWorld) -> None:
    """Each task cites the pump that it names alone."""

    def report(values: Json, _: Request) -> Say:
        named = next((name for name in NAMES if name in values["question"]), "")
        found = [one for one in values["sources"] if named and named in one["content"]]
        return Say(
            " ".join(f"{one['content'].rstrip('.')} [{one['source']}]." for one in found) or "No."
        )

    world.model.steps["task_report"] = report


def test_there_are_three_more_rounds_at_most(world: ResearchWorld) -> None:
    decide(world, *([f"What does the {name} pump cost?"] for name in NAMES[1:]))
    cite_one_more(world)
    record = world.run(QUESTION)
    assert record.rounds == 3
    assert [task.round for task in record.tasks] == [0, 1, 2, 3]
    assert world.of_kind(RoundDecided)[-1].reason == "There were as many rounds as there may be."


def test_a_round_that_cites_nothing_new_is_the_last_one(world: ResearchWorld) -> None:
    decide(world, ["What does the Birch pump cost?"], ["Does the Birch pump cost much?"])
    cite_one_more(world)
    record = world.run(QUESTION)
    assert record.rounds == 2
    assert world.of_kind(RoundDecided)[-1].reason == "The last round brought no new source."


def test_three_tasks_a_round_and_none_that_was_there(world: ResearchWorld) -> None:
    asked = [f" {QUESTION.upper()} ", "One?", "one", "Two?", "Three?", "Four?"]
    decide(world, asked, [])
    record = world.run(QUESTION)
    assert [task.question for task in record.added] == ["One?", "Two?", "Three?"]


def test_the_orchestrator_reads_the_reports_and_what_is_missing(world: ResearchWorld) -> None:
    world.run(f"{QUESTION}; Who won the match?")
    values = world.model.of("next_tasks")[0]
    assert [one["question"] for one in values["reports"]] == [QUESTION]
    assert "The Aster pump costs 10 EUR [" in values["reports"][0]["report"]
    assert {one["date"] for one in values["sources"]} == {"2026-03-01"}
    assert "Who won the match?" in values["could_not_be_found"]


def test_a_decision_may_be_repeated(world: ResearchWorld) -> None:
    record = run_pending_tasks(make_record(QUESTION), world.dependencies(), world.control())
    first = choose_next_tasks(record, world.dependencies(), world.control())
    second = choose_next_tasks(record, world.dependencies(), world.control())
    assert replace(first, spent=Spent()) == replace(second, spent=Spent())


def test_so_many_agents_work_side_by_side_and_no_more(world: ResearchWorld) -> None:
    working: set[int] = set()
    most: list[int] = []

    def follow(event: ResearchEvent) -> None:
        if isinstance(event, TaskStarted):
            working.add(event.task.number)
            most.append(len(working))
        elif isinstance(event, TaskDone):
            working.discard(event.report.task.number)

    world.on_event = follow
    questions = [f"What does the {name} pump cost?" for name in NAMES]
    record = make_record(*questions, parallel_tasks=2)
    record = run_pending_tasks(record, world.dependencies(), world.control())
    assert max(most) == 2
    assert [one.task.number for one in record.reports] == [1, 2, 3, 4, 5, 6]
    assert len(world.saved) == 6


def test_an_agent_that_hangs_costs_its_own_task(
    world: ResearchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_pool, "GRACE_SECONDS", 0.5)
    released = threading.Event()
    threads = iter([0, 1])

    def resolve() -> Readers | None:
        if next(threads, 1) == 0:
            released.wait(30)
        return world.readers

    parts = replace(world.dependencies(), resolve_readers=resolve)
    record = make_record(QUESTION, "What does the Birch pump cost?", seconds=2.0)
    started = time.monotonic()
    record = run_pending_tasks(record, parts, world.control())
    released.set()
    assert time.monotonic() - started < 20
    (lost,) = [one for one in record.reports if not one.has_text]
    assert lost.failure == "This task did not end in time."
    assert len(record.written_reports) == 1


def test_a_budget_that_has_ended_begins_nothing(world: ResearchWorld) -> None:
    record = make_record(QUESTION, cycles=0)
    record = run_pending_tasks(record, world.dependencies(), world.control())
    assert [one.failure for one in record.reports] == [BUDGET_ENDED]
    assert world.world.server.requests == []


@pytest.mark.parametrize("cycles", [1, 2, 5, 7])
def test_no_more_steps_are_taken_than_there_are(world: ResearchWorld, cycles: int) -> None:
    record = make_record(*(f"What does the {name} pump cost?" for name in NAMES), cycles=cycles)
    record = world.go_on(record)
    begun = min(len(NAMES), cycles)
    assert record.spent.cycles == begun
    started = [one.task.number for one in world.of_kind(TaskStarted)]
    assert sorted(started) == list(range(1, begun + 1))
    assert record.report is not None
    missing = [
        question for question in NAMES[begun:] if question not in " ".join(record.report.not_found)
    ]
    assert missing == []


@given(
    tokens=st.integers(0, 10**6),
    spent=st.integers(0, 10**6),
    tasks=st.integers(1, 6),
    parallel=st.integers(1, 6),
    rounds=st.integers(0, 3),
)
def test_shares_are_equal_and_come_to_no_more_than_there_is(
    tokens: int, spent: int, tasks: int, parallel: int, rounds: int
) -> None:
    budget = ResearchBudget(
        tokens=tokens, seconds=100.0, cycles=40, pages=20, parallel_tasks=parallel
    )
    record = ResearchRecord(
        request=ResearchRequest(question="?", budget=budget),
        spent=Spent(tokens=spent, seconds=10.0, cycles=4, pages=2),
        rounds=rounds,
    )
    share = share_budget(record, tasks)
    assert share.tokens * tasks + spent <= max(spent, tokens * 0.9)
    waves = -(-tasks // parallel)
    assert share.seconds * waves <= 80.0 + 1e-6
    assert share.pages * tasks <= 18
    assert share.cycles == min(8, 36 // tasks)
