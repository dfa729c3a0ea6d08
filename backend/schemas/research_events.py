"""The events of research runs in the form in which clients receive them."""

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from backend.conversations.turn_events import EncodedEvent
from backend.research.events import (
    ActionDone,
    ActionStarted,
    ClarificationAsked,
    EarlierFindingsUsed,
    IntermediateReportCitedDocs,
    PlanMade,
    ReportChecked,
    ReportPiece,
    ReportStarted,
    ReportsWithdrawn,
    ResearchDone,
    ResearchFailed,
    RoundDecided,
    SourceFound,
    TaskDone,
    TaskStarted,
)
from backend.schemas.answer import TextEvent
from backend.schemas.base import Schema, with_example
from backend.schemas.research import (
    RESEARCH_COUNTS,
    RESEARCH_SOURCE,
    RESEARCH_TASK,
    ResearchCountsResponse,
    ResearchReportResponse,
    ResearchSourceResponse,
    ResearchStateName,
    ResearchTaskResponse,
    TaskReportResponse,
)

if TYPE_CHECKING:
    from backend.research.events import ResearchEvent

ActionName = Literal["search", "visit", "reflect", "answer", "code"]


class ClarificationEvent(Schema):
    model_config = with_example(questions=["Which countries do you mean?"])

    questions: tuple[str, ...]


class PlanEvent(Schema):
    model_config = with_example(tasks=[RESEARCH_TASK])

    tasks: tuple[ResearchTaskResponse, ...]


class UsedFindingResponse(Schema):
    id: str
    """Of the finding: `/api/knowledge/{id}` returns it."""
    question: str
    found_at: datetime


class EarlierFindingsUsedEvent(Schema):
    """What research found out before is known to the plan, or to a task, before anything is searched."""

    model_config = with_example(
        task=1,
        findings=[
            {
                "id": "q9vKc1h0TtO3pWJm3xQ7aA",
                "question": "How long is parental leave?",
                "found_at": "2026-03-02T09:30:00Z",
            }
        ],
    )

    task: int | None
    """Null: the plan."""
    findings: tuple[UsedFindingResponse, ...]


class TaskStartedEvent(Schema):
    """A task that starts once more, after a process had to end, begins anew: what was seen of it before does not count."""

    model_config = with_example(task=RESEARCH_TASK)

    task: ResearchTaskResponse


class ActionStartedEvent(Schema):
    model_config = with_example(
        task=1, step=1, action="search", question="How long is leave?", about=["parental leave"]
    )

    task: int
    step: int
    """Of the task, from 1."""
    action: ActionName
    question: str
    about: tuple[str, ...]
    """Queries, addresses, new questions, or what is calculated."""


class ActionDoneEvent(Schema):
    model_config = with_example(task=1, step=1, action="search", brought=3, notes=[])

    task: int
    step: int
    action: ActionName
    brought: int
    """New sources, pages, questions or answers."""
    notes: tuple[str, ...]
    """What failed or was refused, and why."""


class SourceFoundEvent(Schema):
    model_config = with_example(task=1, source=RESEARCH_SOURCE)

    task: int
    source: ResearchSourceResponse


class CitedSourcesEvent(Schema):
    model_config = with_example(task=1, sources=[RESEARCH_SOURCE])

    task: int
    sources: tuple[ResearchSourceResponse, ...]


class RoundEvent(Schema):
    model_config = with_example(
        round=1, tasks=[{**RESEARCH_TASK, "number": 5, "round": 1}], reason="Dates are missing."
    )

    round: int
    tasks: tuple[ResearchTaskResponse, ...]
    """None: the report is written next."""
    reason: str


class ReportsWithdrawnEvent(Schema):
    model_config = with_example(tasks=[2])

    tasks: tuple[int, ...]
    """Their sources may not be read any more: they are gone, or done again."""


class ReportStartedEvent(Schema):
    """A report that starts once more begins anew: its text before does not count."""

    model_config = with_example(reason="All was searched.")

    reason: str


class ReportCheckedEvent(Schema):
    model_config = with_example(counts=RESEARCH_COUNTS)

    counts: ResearchCountsResponse


class ResearchStateEvent(Schema):
    """The run waits: for you, or for a free place."""

    model_config = with_example(state="planned")

    state: ResearchStateName


class ResumedEvent(Schema):
    """The run goes on at its last finished task, after a process had to end."""

    model_config = with_example()


class WithheldEvent(Schema):
    """In the place of one or more events that rest on sources that you may not read."""

    model_config = with_example(
        detail="This answer rests on sources that were deleted, or that you may not read."
    )

    detail: str


class ResearchEndedEvent(Schema):
    """The last event: `done`, `stopped` or `failed`."""

    model_config = with_example(problem=None)

    problem: str | None
    """Why there is no report."""


def encode_research_event(event: "ResearchEvent") -> EncodedEvent | None:
    """Encode an event of a run; see `backend.research.runs.run_events.Encode`."""
    made = _make_event(event)
    return None if made is None else EncodedEvent(made[0], made[1].model_dump_json())


def _make_event(event: "ResearchEvent") -> tuple[str, BaseModel] | None:
    match event:
        case ClarificationAsked(clarification=clarification):
            return "clarification", ClarificationEvent(questions=clarification.questions)
        case PlanMade(plan=plan):
            return "plan", PlanEvent.model_validate(plan)
        case EarlierFindingsUsed():
            return "earlier_findings", EarlierFindingsUsedEvent.model_validate(event)
        case RoundDecided():
            return "round", RoundEvent.model_validate(event)
        case ReportsWithdrawn():
            return "reports_withdrawn", ReportsWithdrawnEvent.model_validate(event)
        case ReportStarted(reason=reason):
            return "report_started", ReportStartedEvent(reason=reason)
        case ReportChecked(counts=counts):
            made = ResearchCountsResponse.model_validate(counts)
            return "report_checked", ReportCheckedEvent(counts=made)
        case ReportPiece(text=text):
            return "text", TextEvent(text=text)
        case ResearchDone(report=report):
            return "report", ResearchReportResponse.from_report(report)
        case ResearchFailed():
            return None  # the last event says it
        case _:
            return _make_task_event(event)


def _make_task_event(
    event: TaskStarted
    | ActionStarted
    | ActionDone
    | SourceFound
    | IntermediateReportCitedDocs
    | TaskDone,
) -> tuple[str, BaseModel]:
    match event:
        case TaskStarted(task=task):
            return "task_started", TaskStartedEvent(task=ResearchTaskResponse.model_validate(task))
        case ActionStarted():
            return "action_started", ActionStartedEvent.model_validate(event)
        case ActionDone():
            return "action_done", ActionDoneEvent.model_validate(event)
        case SourceFound():
            return "source", SourceFoundEvent.model_validate(event)
        case IntermediateReportCitedDocs():
            return "cited_sources", CitedSourcesEvent.model_validate(event)
        case TaskDone(report=report):
            return "task_done", TaskReportResponse.from_report(report)
