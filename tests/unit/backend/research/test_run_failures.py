"""Whatever fails in a run, at whatever step: there is a report, or a sentence that says why there is none."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from backend.research.dependencies import ResearchInterruptedError
from backend.research.events import (
    ActionDone,
    ActionStarted,
    PlanMade,
    ReportStarted,
    ResearchFailed,
    RoundDecided,
    TaskDone,
    TaskStarted,
)
from backend.research.record.budget import ResearchBudget
from backend.research.record.request import ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.steps import continue_research
from tests.support.research_world import (
    QUESTION,
    ResearchWorld,
    check_counts,
    check_numbering,
    research_world,
)
from tests.support.scripted_model import HangUp, Json, Raw, Refuse, Reply, Request, Say, Silent
from tests.support.services import serving
from tests.support.soak import scaled

STEPS = ("plan", "agent", "judge", "task_report", "next_tasks", "contradictions", "final_report")
FAULTS: dict[str, Reply] = {
    "an error of the server": Refuse(500, "out of memory"),
    "a refusal": Refuse(400, "not this way"),
    "a closed connection": HangUp(),
    "garbage": Raw(b"\x00\xff{{{", "application/json"),
    "nothing": Say(""),
    "no JSON": Say("I would rather not say. [99] {"),
    "JSON of something else": Say('{"surprise": [1, {"action": null}]}'),
    "JSON of wrong types": Say(
        json.dumps(
            {
                "action": 3,
                "tasks": {"a": 1},
                "definite": "yes",
                "contradictions": [
                    7,
                    {"about": 1},
                    {"about": "x", "statements": [{"source": True}]},
                ],
                "sentences": "none",
            }
        )
    ),
}
FEW_FAULTS = scaled(
    ("JSON of wrong types",), ("an error of the server", "no JSON", "JSON of wrong types"), "slow"
)


def always(reply: Reply) -> Callable[[Json, Request], Reply]:
    return lambda _values, _request: reply


def check_end(world: ResearchWorld, record: ResearchRecord) -> None:
    """There is a report that holds together, or a sentence."""
    last = world.events[-1]
    if record.report is None:
        assert isinstance(last, ResearchFailed)
        assert last.message.endswith((".", "!", "?"))
        assert last.advice
        return
    check_numbering(record.report)
    check_counts(record.report)
    assert record.report.text


@pytest.mark.deep("slow")
@pytest.mark.deep("faults")
@pytest.mark.parametrize("fault", scaled(FEW_FAULTS, tuple(FAULTS), "faults"))
@pytest.mark.parametrize("step", STEPS)
def test_a_step_whose_model_fails_costs_what_it_would_have_brought(step: str, fault: str) -> None:
    with research_world() as world:
        world.model.steps = {step: always(FAULTS[fault])}
        record = world.run(uses_web=True)
        check_end(world, record)
    assert record.report is not None, world.events[-1]
    assert "The Aster pump costs 40 EUR" in record.report.text


@pytest.mark.deep("slow")
@pytest.mark.deep("faults")
@pytest.mark.parametrize("fault", scaled(FEW_FAULTS, tuple(FAULTS), "faults"))
def test_without_any_answer_of_the_model_the_sources_are_quoted(fault: str) -> None:
    with research_world() as world:
        world.model.steps = {step: always(FAULTS[fault]) for step in (*STEPS, "other", "claims")}
        record = world.run(uses_web=True)
        check_end(world, record)
    assert record.report is not None
    assert "“The Aster pump costs 40 EUR.” [" in record.report.text
    assert any("The language model did not write" in note for note in record.report.notes)


def test_a_model_that_is_slow_ends_with_the_time_of_the_run() -> None:
    with research_world() as world:
        world.model.steps = {"agent": always(Silent())}
        record = world.run(budget=ResearchBudget(seconds=6.0))
        check_end(world, record)
    assert record.report is not None
    assert record.spent.seconds < 20


@pytest.mark.parametrize(
    "served",
    [
        serving.reply_text("no", status=500),
        serving.reply_text("no", status=403),
        serving.reply_text("", media_type="text/html"),
    ],
)
def test_a_page_that_is_not_to_be_had_is_named_and_the_rest_is_reported(
    served: serving.Reply,
) -> None:
    with research_world() as world:
        world.world.put("news.test", "/aster", lambda _: served)
        record = world.run(uses_web=True)
        check_end(world, record)
    visits = [one for one in world.of_kind(ActionDone) if one.action == "visit"]
    assert any(one.brought == 0 and one.notes for one in visits)
    assert record.report is not None
    assert "The Aster pump costs 40 EUR [" in record.report.text
    assert "45 EUR" not in record.report.text


def test_an_engine_that_fails_costs_the_web_alone() -> None:
    with research_world() as world:
        world.world.engine.instead = serving.reply_text("broken", status=500)
        record = world.run(uses_web=True)
        check_end(world, record)
    assert record.report is not None
    assert "The Aster pump costs 40 EUR [" in record.report.text
    searched = [one for one in world.of_kind(ActionDone) if one.action == "search"]
    assert any("The web search does not answer now." in one.notes for one in searched)


def test_where_nothing_is_found_it_is_said() -> None:
    with research_world(facts={}, web={}) as world:
        record = world.run(uses_web=True)
        check_end(world, record)
    assert record.report is None
    assert "Nothing was found that answers this." in world.events[-1].message  # type: ignore[union-attr]
    assert not world.model.of("final_report")


def test_where_nothing_is_searched_it_is_said() -> None:
    with research_world() as world:
        record = world.run(uses_documents=False)
        check_end(world, record)
    assert record.report is None
    assert "neither documents nor the web" in world.events[-1].message  # type: ignore[union-attr]
    assert not world.model.of("agent")


@pytest.mark.parametrize("tokens", [0, 50, 2_000, 6_000])
def test_when_the_tokens_end_there_is_a_report_of_what_there_is_or_a_reason(tokens: int) -> None:
    with research_world() as world:
        record = world.run(budget=ResearchBudget(tokens=tokens))
        check_end(world, record)
    assert record.spent.tokens <= tokens


def test_when_the_steps_end_there_is_a_report_of_what_there_is() -> None:
    with research_world() as world:
        record = world.run(budget=ResearchBudget(cycles=2))
        check_end(world, record)
    assert record.report is not None
    assert record.spent.cycles == 2
    assert [one.reason for one in world.of_kind(ReportStarted)] == [
        "The budget for searching has ended."
    ]
    assert "The budget for searching has ended." in record.report.notes


def test_when_the_pages_end_no_more_are_opened() -> None:
    with research_world() as world:
        record = world.run(uses_web=True, budget=ResearchBudget(pages=2))
        check_end(world, record)
    assert len(world.world.pages_asked) <= 2
    assert record.spent.pages <= 2


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    "kind",
    [PlanMade, TaskStarted, ActionStarted, ActionDone, TaskDone, RoundDecided, ReportStarted],
)
def test_stop_writes_what_there_is(kind: type[object]) -> None:
    with research_world() as world:
        world.on_event = lambda event: world.stop.cancel() if isinstance(event, kind) else None
        record = world.run(uses_web=True)
        check_end(world, record)
    if kind in (ActionDone, TaskDone, RoundDecided, ReportStarted):
        assert record.report is not None
        assert "The Aster pump" in record.report.text
    if kind is TaskDone and record.report is not None:
        assert "The research was stopped." in record.report.notes


def test_stop_does_not_wait_for_the_model() -> None:
    with research_world() as world:
        world.model.steps = {"agent": always(Silent())}
        threading.Timer(1.0, world.stop.cancel).start()
        record = world.run()
        check_end(world, record)
    assert record.report is not None
    assert record.spent.seconds < 10
    assert "“The Aster pump costs 40 EUR.” [" in record.report.text


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    "kind", [PlanMade, TaskStarted, ActionDone, TaskDone, RoundDecided, ReportStarted]
)
def test_an_interrupted_run_goes_on_where_it_was(kind: type[object]) -> None:
    with research_world() as world:
        world.on_event = lambda event: world.interrupt.cancel() if isinstance(event, kind) else None
        with pytest.raises(ResearchInterruptedError):
            world.run()
        asked = ResearchRecord(request=ResearchRequest(question=QUESTION))
        left = world.saved[-1] if world.saved else asked
        assert left.report is None
        world.interrupt = type(world.interrupt)()
        world.on_event = lambda _: None
        record = world.go_on(left)
        check_end(world, record)
    assert record.report is not None


def test_what_saving_raises_ends_the_run_and_its_agents() -> None:
    class LeaseLostError(Exception):
        pass

    def lose(record: ResearchRecord) -> None:
        if world.saved:
            raise LeaseLostError
        world.saved.append(record)

    with research_world() as world:
        control = replace(world.control(), save=lose)
        asked = ResearchRecord(request=ResearchRequest(question=QUESTION))
        with pytest.raises(LeaseLostError):
            continue_research(asked, world.dependencies(), control)
    assert len(world.saved) == 1
