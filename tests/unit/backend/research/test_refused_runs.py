"""A run that may search nothing more, and ask no model, reports what it has found until then, and why there is no more."""

import pytest

from backend.chat.turn_settings import PLAIN
from backend.research.dependencies import ResearchInterruptedError, ResearchRefusal
from backend.research.events import ActionStarted, ReportStarted, ResearchFailed, TaskDone
from backend.research.record.budget import ResearchBudget
from backend.research.run_assistant import ASSISTANT_GONE
from indexing.runtime.deadline import CancelToken
from tests.support.research_world import (
    check_counts,
    check_numbering,
    research_world,
)
from tests.unit.backend.research.test_run_rights import at_first

ONE_BY_ONE = ResearchBudget(parallel_tasks=1)
COST, WEIGHT = "What does the Aster pump cost?", "What does the Aster pump weigh?"
BOTH = f"{COST}; {WEIGHT}"
USED_UP = ResearchRefusal("The tokens for today are used up.", "Start it again tomorrow.")


def test_where_the_assistant_goes_in_mid_run_what_was_found_until_then_is_reported() -> None:
    now = [PLAIN]
    with research_world() as world:
        world.on_event = at_first(TaskDone, now.clear)
        parts = world.dependencies(resolve_assistant=lambda _: now[0] if now else None)
        record = world.run(BOTH, parts, budget=ONE_BY_ONE)
        asked = [name for name, _ in world.model.asked]
    assert record.report is not None
    assert "The Aster pump costs 40 EUR [1]" in record.report.text
    assert record.report.not_found == (f"{WEIGHT} {ASSISTANT_GONE}",)
    assert record.report.notes[0] == ASSISTANT_GONE
    assert [one.reason for one in world.of_kind(ReportStarted)] == [ASSISTANT_GONE]
    assert not {"next_tasks", "contradictions", "final_report"} & {*asked}
    check_numbering(record.report)
    check_counts(record.report)


def test_a_run_that_is_taken_up_when_a_budget_is_used_up_reports_what_it_has() -> None:
    with research_world() as world:
        world.on_event = at_first(TaskDone, world.interrupt.cancel)
        with pytest.raises(ResearchInterruptedError):
            world.run(BOTH, budget=ONE_BY_ONE)
        world.interrupt = CancelToken()
        started, asked = len(world.of_kind(ActionStarted)), len(world.model.asked)
        (done,) = world.saved[-1].written_reports
        record = world.go_on(world.saved[-1], world.dependencies(refusal=USED_UP))
        assert len(world.of_kind(ActionStarted)) == started
        assert len(world.model.asked) == asked
    assert record.report is not None
    assert record.report.notes[0] == USED_UP.reason
    assert done.text in record.report.text
    assert record.pending_tasks


def test_where_nothing_was_found_until_then_the_run_fails_with_the_reason() -> None:
    with research_world() as world:
        record = world.run(BOTH, world.dependencies(refusal=USED_UP))
        assert world.model.asked == []
    assert record.report is None
    assert world.events == [ResearchFailed(USED_UP.reason, USED_UP.advice)]


def test_a_run_that_fails_keeps_the_reports_that_it_has() -> None:
    with research_world() as world:
        world.on_event = at_first(TaskDone, lambda: setattr(world, "readers", None))
        record = world.run(BOTH, budget=ONE_BY_ONE)
    assert isinstance(world.events[-1], ResearchFailed)
    assert record == world.saved[-1]
    assert [one.task.question for one in record.written_reports] == [COST]
