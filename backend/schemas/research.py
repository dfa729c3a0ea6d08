"""JSON of research runs: the plan, the tasks with what they found, and the report."""

from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from pydantic import JsonValue

from backend.schemas.answer import SourceKindName, Verdict
from backend.schemas.base import Schema, with_example

if TYPE_CHECKING:
    from backend.research.record.final_report import CheckedCitation, FinalReport
    from backend.research.record.sources import NumberedSource
    from backend.research.record.task_report import TaskReport
    from backend.store.research.research_runs import ResearchRun

ResearchStateName: TypeAlias = Literal[
    "clarifying", "planned", "waiting", "running", "stopping", "done", "failed", "stopped"
]
"""`clarifying` and `planned` wait for you, `waiting` for a free place."""

RESEARCH_TASK: dict[str, JsonValue] = {
    "number": 1,
    "question": "How long is parental leave in each country?",
    "round": 0,
}
RESEARCH_SOURCE: dict[str, JsonValue] = {
    "number": 1,
    "kind": "document",
    "document_id": "handbook:leave.md",
    "title": "Leave",
    "url": "https://wiki.example.com/leave",
    "date": "2026-01-12T08:00:00Z",
}
RESEARCH_COUNTS: dict[str, JsonValue] = {
    "sentences": 14,
    "uncited": 2,
    "citations": 12,
    "supported": 10,
    "weak": 1,
    "unsupported": 0,
    "contradicted": 0,
    "unchecked": 1,
}
_CITATION: dict[str, JsonValue] = {
    "number": 1,
    "sentence": "Parents have 26 weeks of paid leave.",
    "verdict": "supported",
    "quote": "Parental leave is 26 weeks, paid in full.",
}
RESEARCH_REPORT: dict[str, JsonValue] = {
    "markdown": "# Parental leave\n\nParents have 26 weeks of paid leave [1].\n",
    "sources": [RESEARCH_SOURCE],
    "citations": [_CITATION],
    "counts": RESEARCH_COUNTS,
    "not_found": ["How many employees take it: no document says so."],
    "contradictions": [
        {"about": "The notice period", "statements": [{"number": 1, "says": "Eight weeks."}]}
    ],
    "notes": [],
}
_RUN: dict[str, JsonValue] = {
    "id": "q9vKc1h0TtO3pWJm3xQ7aA",
    "question": "How do our parental leave rules compare between countries?",
    "state": "running",
    "place": None,
    "tasks": 4,
    "tasks_done": 1,
    "has_report": False,
    "is_new": False,
    "is_own": True,
    "problem": None,
    "conversation_id": None,
    "project_id": None,
    "assistant_id": None,
    "created_at": "2026-03-02T09:30:00Z",
    "updated_at": "2026-03-02T09:31:10Z",
    "ended_at": None,
}


class ResearchTaskResponse(Schema):
    model_config = with_example(**RESEARCH_TASK)

    number: int
    question: str
    round: int
    """0: of the plan; from 1: added after reports were read."""


class ResearchSourceResponse(Schema):
    model_config = with_example(**RESEARCH_SOURCE)

    number: int
    """By which the text beside it cites it."""
    kind: SourceKindName
    document_id: str
    """Of a page of the web: its address."""
    title: str
    url: str
    date: datetime | None
    """When it was published or last changed, where that is known."""

    @classmethod
    def from_source(cls, source: "NumberedSource") -> Self:
        return cls.model_validate(source)


class ResearchCountsResponse(Schema):
    model_config = with_example(**RESEARCH_COUNTS)

    sentences: int
    uncited: int
    """Of the sentences, those that state something without a source."""
    citations: int
    supported: int
    weak: int
    unsupported: int
    contradicted: int
    unchecked: int


class CheckedCitationResponse(Schema):
    model_config = with_example(**_CITATION)

    number: int
    """Of the source."""
    sentence: str
    verdict: Verdict
    quote: str | None
    """Of the source; null where none was found."""

    @classmethod
    def from_citation(cls, citation: "CheckedCitation") -> Self:
        support = citation.support
        return cls(
            number=citation.number,
            sentence=citation.sentence,
            verdict=citation.verdict.value,
            quote=support.quote if support else None,
        )


class SourceStatementResponse(Schema):
    number: int
    says: str


class ContradictionResponse(Schema):
    about: str
    statements: tuple[SourceStatementResponse, ...]


class ResearchReportResponse(Schema):
    model_config = with_example(**RESEARCH_REPORT)

    markdown: str
    """All of it: the text, contradictions, what was not found, counts, sources."""
    sources: tuple[ResearchSourceResponse, ...]
    citations: tuple[CheckedCitationResponse, ...]
    counts: ResearchCountsResponse
    not_found: tuple[str, ...]
    contradictions: tuple[ContradictionResponse, ...]
    notes: tuple[str, ...]

    @classmethod
    def from_report(cls, report: "FinalReport") -> Self:
        return cls(
            markdown=report.markdown,
            sources=tuple(map(ResearchSourceResponse.from_source, report.sources)),
            citations=tuple(map(CheckedCitationResponse.from_citation, report.citations)),
            counts=ResearchCountsResponse.model_validate(report.counts),
            not_found=report.not_found,
            contradictions=tuple(map(ContradictionResponse.model_validate, report.contradictions)),
            notes=report.notes,
        )


class TaskReportResponse(Schema):
    model_config = with_example(
        task=RESEARCH_TASK,
        text="Parents have 26 weeks [1].",
        sources=[RESEARCH_SOURCE],
        gaps=[],
        failure="",
        note="",
    )

    task: ResearchTaskResponse
    text: str
    """Markdown with markers of its own `sources`."""
    sources: tuple[ResearchSourceResponse, ...]
    gaps: tuple[str, ...]
    """Questions that came up and were not answered."""
    failure: str
    """Why there is no text."""
    note: str

    @classmethod
    def from_report(cls, report: "TaskReport") -> Self:
        return cls(
            task=ResearchTaskResponse.model_validate(report.task),
            text=report.text,
            sources=tuple(map(ResearchSourceResponse.from_source, report.sources)),
            gaps=report.gaps,
            failure=report.failure,
            note=report.note,
        )


class ResearchResponse(Schema):
    model_config = with_example(**_RUN)

    id: str
    question: str
    state: ResearchStateName
    place: int | None
    """Among the runs that wait for a free place, from 1."""
    tasks: int
    tasks_done: int
    has_report: bool
    is_new: bool
    """It has ended, and you have not opened it since."""
    is_own: bool
    problem: str | None
    """Why there is no report."""
    conversation_id: str | None
    project_id: str | None
    assistant_id: str | None
    """None: the default one."""
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None

    @classmethod
    def from_run(cls, run: "ResearchRun", place: int | None, is_own: bool) -> Self:  # noqa: FBT001 (a field)
        return cls(
            id=run.id,
            question=run.question,
            state=run.state,
            place=place,
            tasks=run.tasks,
            tasks_done=run.tasks_done,
            has_report=run.has_report,
            is_new=is_own and run.ended_at is not None and run.seen_at is None,
            is_own=is_own,
            problem=run.problem,
            conversation_id=run.conversation_id if is_own else None,
            project_id=run.project_id,
            assistant_id=run.assistant_id if is_own else None,
            created_at=run.created_at,
            updated_at=run.updated_at,
            ended_at=run.ended_at,
        )


class ResearchRunsResponse(Schema):
    model_config = with_example(runs=[_RUN], next=None)

    runs: tuple[ResearchResponse, ...]
    """The last changed one first."""
    next: str | None
    """Given as `before`, it returns the following ones; null at the end."""


class OpenedResearchResponse(Schema):
    model_config = with_example(
        run=_RUN,
        clarification=[],
        plan=[RESEARCH_TASK],
        reports=[],
        report=None,
        withheld=False,
        notice=None,
    )

    run: ResearchResponse
    clarification: tuple[str, ...]
    """Questions back; they are to be answered or passed over while the run is `clarifying`."""
    plan: tuple[ResearchTaskResponse, ...]
    """The tasks so far; of those whose question rests on sources that you may not read, none."""
    reports: tuple[TaskReportResponse, ...]
    """Of tasks that have ended, as far as you may read what they rest on."""
    report: ResearchReportResponse | None
    withheld: bool
    """Whether something is left out, because it rests on sources that you may not read."""
    notice: str | None
    """The sentence that says so."""
