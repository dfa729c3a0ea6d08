"""Rights that change in mid-run: nothing of what may not be read any more is reported, and what may be is."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from backend.research import readable_documents
from backend.research.agent.past_answers import find_past_answers
from backend.research.events import (
    ActionDone,
    ReportChecked,
    ReportPiece,
    ReportStarted,
    ReportsWithdrawn,
    ResearchDone,
    ResearchEvent,
    ResearchFailed,
    RoundDecided,
    TaskDone,
    TaskStarted,
)
from backend.research.record.budget import ResearchBudget
from backend.research.record.request import PastMessage
from connectors.access import Readers
from connectors.errors import TemporarilyUnavailableError
from tests.support.research_world import ANN, ResearchWorld, research_world
from tests.support.search import MemoryIndex

SECRET = "40 EUR"
NOBODY = Readers.of()


def at_first(kind: type[object], do: Callable[[], None]) -> Callable[[ResearchEvent], None]:
    """Do something at the first event of a kind, and never again."""
    done: list[ResearchEvent] = []

    def follow(event: ResearchEvent) -> None:
        if isinstance(event, kind) and not done:
            done.append(event)
            do()

    return follow


def withdraw(world: ResearchWorld) -> None:
    world.readers = NOBODY


def delete(world: ResearchWorld) -> None:
    index = world.world.index
    kept = tuple(one for one in index.corpus if one.document_id != "kb:price")
    object.__setattr__(index, "corpus", kept)


def shown(world: ResearchWorld) -> str:
    """All that a report and the tasks that ended say, and nothing that was told of a task on its way."""
    kinds = (ReportPiece, ResearchDone, ReportChecked, RoundDecided)
    return "\n".join(str(event) for event in world.events if isinstance(event, kinds))


@pytest.mark.parametrize("change", [withdraw, delete])
@pytest.mark.parametrize("kind", [TaskStarted, ActionDone, TaskDone, RoundDecided, ReportStarted])
def test_what_may_not_be_read_any_more_is_in_no_report(
    kind: type[object], change: Callable[[ResearchWorld], None]
) -> None:
    with research_world(private=["kb:price"]) as world:
        world.on_event = at_first(kind, lambda: change(world))
        record = world.run()
    assert record.report is not None
    assert SECRET not in shown(world)
    assert SECRET not in record.report.markdown
    assert "kb:price" not in record.report.documents
    assert "Blau AG" in record.report.text


def test_a_task_that_had_read_it_reports_nothing_of_it() -> None:
    with research_world(private=["kb:price"]) as world:
        world.on_event = at_first(ActionDone, lambda: withdraw(world))
        world.run()
    for done in world.of_kind(TaskDone):
        assert SECRET not in str(done)


def test_tasks_of_the_plan_are_done_again_for_what_may_be_read() -> None:
    with research_world(private=["kb:price"]) as world:
        world.on_event = at_first(RoundDecided, lambda: withdraw(world))
        record = world.run()
    (withdrawn,) = world.of_kind(ReportsWithdrawn)
    assert set(withdrawn.tasks) >= {1, 2}
    assert [one.task.number for one in world.of_kind(TaskStarted) if one.task.round == 0] == [
        1, 2, 1, 2,
    ]  # fmt: skip
    assert all(one.has_text for one in record.reports if one.task.round == 0)


def test_a_person_who_gets_more_rights_in_mid_run_gets_what_they_admit_to() -> None:
    with research_world(private=["kb:maker"]) as world:
        world.readers = NOBODY
        world.on_event = at_first(TaskDone, lambda: setattr(world, "readers", ANN))
        record = world.run(budget=ResearchBudget(parallel_tasks=1))
    assert record.report is not None
    assert "made by Blau AG" in record.report.text


@pytest.mark.parametrize("kind", [TaskStarted, ActionDone, TaskDone, RoundDecided, ReportStarted])
def test_a_person_who_is_gone_is_shown_nothing(kind: type[object]) -> None:
    with research_world() as world:
        world.on_event = at_first(kind, lambda: setattr(world, "readers", None))
        record = world.run()
    assert record.report is None
    assert world.of_kind(ReportPiece) == []
    last = world.events[-1]
    assert isinstance(last, ResearchFailed)
    assert last.message == "The account or the session of the person who asked has ended."


def test_where_rights_cannot_be_read_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readable_documents, "PAUSE_SECONDS", 0.01)

    def fail() -> None:
        raise TemporarilyUnavailableError("The index does not answer.", timedelta(seconds=1))

    with research_world() as world:
        corpus = world.world.index.corpus
        parts = replace(world.dependencies(), index=MemoryIndex(corpus, before_chunks=fail))
        record = world.run(parts=parts)
        assert record.report is None
        assert isinstance(world.events[-1], ResearchFailed)
        assert world.of_kind(ReportPiece) == []


def test_an_index_that_answers_again_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readable_documents, "PAUSE_SECONDS", 0.01)
    calls = itertools.count()

    def fail_twice() -> None:
        if next(calls) % 3 < 2:
            raise TemporarilyUnavailableError("The index does not answer.", timedelta(seconds=1))

    with research_world() as world:
        corpus = world.world.index.corpus
        index = MemoryIndex(corpus, before_chunks=fail_twice)
        record = world.run(
            parts=replace(world.dependencies(), index=index),
            budget=ResearchBudget(parallel_tasks=1),
        )
    assert record.report is not None


def test_rights_that_change_again_and_again_end_the_run_with_a_reason() -> None:
    with research_world(private=["kb:price"]) as world:

        def alternate(event: ResearchEvent) -> None:
            if isinstance(event, ReportStarted):
                world.readers = NOBODY
            if isinstance(event, TaskStarted):
                world.readers = ANN

        world.on_event = alternate
        record = world.run()
    assert record.report is None
    assert isinstance(world.events[-1], ResearchFailed)
    assert (
        world.events[-1].message == "Documents that the report rests on may not be read any more."
    )


def test_an_answer_of_before_is_known_to_those_tasks_alone_that_begin_while_it_may_be_read() -> (
    None
):
    """The first task is told of both answers; the right to one of them ends with it."""
    history = (
        PastMessage("user", "Who sells the pump?"),
        PastMessage("assistant", "Blau AG sells it.", (), ("kb:maker",)),
        PastMessage("user", "What does it cost?"),
        PastMessage("assistant", "It costs 41 EUR.", (), ("kb:price",)),
    )
    with research_world(private=["kb:price"]) as world:
        world.on_event = at_first(TaskDone, lambda: withdraw(world))
        world.run(budget=ResearchBudget(parallel_tasks=1), history=history)
        asked = [
            one.text
            for one in world.world.server.requests
            if "You research one question" in one.text
        ]
    assert all("Blau AG sells it." in text for text in asked)
    told = ["It costs 41 EUR." in text for text in asked]
    assert told[0]
    assert not told[-1]
    assert told == sorted(told, reverse=True)
    first = asked[0]
    assert first.index("What does it cost?") < first.index("It costs 41 EUR.") < first.index("asked_by_the_person")  # fmt: skip


def test_where_rights_cannot_be_looked_up_only_what_rests_on_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readable_documents, "PAUSE_SECONDS", 0.01)

    def fail() -> None:
        raise TemporarilyUnavailableError("The index does not answer.", timedelta(seconds=1))

    history = (
        PastMessage("user", "Who?"),
        PastMessage("assistant", "Blau AG.", (), ("kb:maker",)),
        PastMessage("user", "Twice?"),
        PastMessage("assistant", "Yes.", (), ("memory/one",)),
    )
    with research_world() as world:
        index = MemoryIndex(world.world.index.corpus, before_chunks=fail)
        parts = replace(world.dependencies(), index=index)
        assert [one.answer for one in find_past_answers(history, parts)] == ["Yes."]
        known = find_past_answers(history, world.dependencies())
        assert [one.answer for one in known] == ["Blau AG.", "Yes."]
