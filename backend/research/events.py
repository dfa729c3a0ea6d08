"""The events of a research run, in the order in which they happen; the last one is ResearchDone or ResearchFailed.

Those of tasks that run side by side come in any order. Each that says something of documents names them, so that
whoever shows it can check that they may be read.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from backend.research.record.final_report import FinalReport, ReportCounts
from backend.research.record.plan import ResearchPlan, ResearchTask
from backend.research.record.request import Clarification
from backend.research.record.sources import NumberedSource
from backend.research.record.task_report import TaskReport


class ActionKind(StrEnum):
    """What a research agent may do in a step."""

    SEARCH = "search"
    VISIT = "visit"
    REFLECT = "reflect"
    ANSWER = "answer"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class ClarificationAsked:
    clarification: Clarification


@dataclass(frozen=True, slots=True)
class UsedFinding:
    """A finding of earlier research."""

    id: str
    question: str
    found_at: datetime


@dataclass(frozen=True, slots=True)
class EarlierFindingsUsed:
    """What research found out before is known to the plan, or to a task, before anything is searched."""

    task: int | None
    """Its number; None: of the plan."""
    findings: tuple[UsedFinding, ...]
    documents: tuple[str, ...] = ()
    """Ids of all documents that these rest on."""


@dataclass(frozen=True, slots=True)
class PlanMade:
    plan: ResearchPlan


@dataclass(frozen=True, slots=True)
class TaskStarted:
    task: ResearchTask


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionStarted:
    task: int
    """Its number."""
    step: int
    """Of the task, from 1."""
    action: ActionKind
    question: str
    """That of the task, or a gap that the agent works on."""
    about: tuple[str, ...] = ()
    """Queries, addresses, new questions, or what is calculated."""
    documents: tuple[str, ...] = ()
    """Ids of documents that the agent had read before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionDone:
    task: int
    step: int
    action: ActionKind
    brought: int
    """New sources, pages, questions or answers; 0: the action is off in the next step."""
    notes: tuple[str, ...] = ()
    """Sentences on what failed or was refused, and why."""
    sent: tuple[str, ...] = ()
    """Queries of the web as they were sent."""
    receivers: tuple[str, ...] = ()
    """Whom they were sent to; nobody where they had been searched before."""
    documents: tuple[str, ...] = ()
    """Ids of documents that the agent has read until now."""


@dataclass(frozen=True, slots=True)
class SourceFound:
    task: int
    source: NumberedSource
    """Under its number within the task, without its texts."""


@dataclass(frozen=True, slots=True)
class IntermediateReportCitedDocs:
    """What the report of a task cites."""

    task: int
    sources: tuple[NumberedSource, ...]
    """By number, without their texts."""


@dataclass(frozen=True, slots=True)
class TaskDone:
    report: TaskReport


@dataclass(frozen=True, slots=True)
class RoundDecided:
    """The orchestrator has read the reports."""

    round: int
    tasks: tuple[ResearchTask, ...]
    """None: the final report is written next."""
    reason: str
    documents: tuple[str, ...] = ()
    """Ids of documents that the reports rest on."""


@dataclass(frozen=True, slots=True)
class ReportsWithdrawn:
    """Documents that reports rest on may not be read any more: these tasks are gone, or done again."""

    tasks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReportStarted:
    reason: str
    """Why now: all was searched, the budget has ended, or the run was stopped."""


@dataclass(frozen=True, slots=True)
class ReportPiece:
    """A piece of the checked report, in Markdown."""

    text: str
    documents: tuple[str, ...] = ()
    """Ids of all documents that the report rests on."""


@dataclass(frozen=True, slots=True)
class ReportChecked:
    """Comes before the first piece of the report."""

    counts: ReportCounts
    documents: tuple[str, ...] = ()
    """Ids of all documents that the report rests on."""


@dataclass(frozen=True, slots=True)
class ResearchDone:
    report: FinalReport


@dataclass(frozen=True, slots=True)
class ResearchFailed:
    message: str
    advice: str


ResearchEvent: TypeAlias = (
    ClarificationAsked
    | EarlierFindingsUsed
    | PlanMade
    | TaskStarted
    | ActionStarted
    | ActionDone
    | SourceFound
    | IntermediateReportCitedDocs
    | TaskDone
    | RoundDecided
    | ReportsWithdrawn
    | ReportStarted
    | ReportPiece
    | ReportChecked
    | ResearchDone
    | ResearchFailed
)
