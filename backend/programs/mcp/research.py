"""What `research` returns, and what it says while the report comes about."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias

from backend.chat.rights_watch import AskerGoneError
from backend.conversations.answer_gate import WITHHELD
from backend.conversations.turn_events import NumberedEvent
from backend.programs.mcp.asker import McpAsker, ResearchNews, ToolError
from backend.research.record.final_report import FinalReport
from backend.research.record.sources import NumberedSource
from backend.research.runs.service import OpenedResearch
from backend.schemas.mcp_tool import ReportSource, ResearchArguments, SourcedReport
from backend.schemas.research import ResearchCountsResponse
from connectors.errors import QuarryError
from indexing.runtime.deadline import DeadlineExceededError
from indexing.text.normalization import pluralize

TellStep: TypeAlias = Callable[[str | None], Awaitable[None]]
SOURCES_PAUSE = 2.0
"""Seconds at least between two reports of how many sources were found."""
_STATES: Mapping[str, str] = {
    "waiting": "Waiting for a free place",
    "running": "Planning the research",
    "stopping": "Stopped: the report will say what was found so far",
}


async def report_research(
    asker: McpAsker, asked: ResearchArguments, tell: TellStep
) -> SourcedReport:
    """Research a question, and tell each step.

    Raises:
        ToolError: there is no report, or not yet.
    """
    asker.note_query(asked.question)
    followed = _FollowedResearch(asker, tell)
    try:
        async with aclosing(asker.research(asked)) as news:
            await followed.follow(news)
    except (QuarryError, DeadlineExceededError, AskerGoneError) as error:
        raise ToolError(followed.describe_failure(error)) from error
    return followed.make_report()


class _FollowedResearch:
    def __init__(self, asker: McpAsker, tell: TellStep) -> None:
        self._asker = asker
        self._tell = tell
        self._steps = ResearchSteps(time.monotonic)
        self._last: OpenedResearch | None = None

    async def follow(self, news: AsyncIterator[ResearchNews]) -> None:
        async for one in news:
            match one:
                case OpenedResearch():
                    if self._last is None:
                        await self._tell(f"Research has begun. {self._describe_place(one)}")
                    self._last = one
                case NumberedEvent():
                    await self._tell(self._steps.describe(one))

    def describe_failure(self, error: Exception) -> str:
        """Return why research has not begun, or is followed no further."""
        if isinstance(error, AskerGoneError):
            reason = "Your token is not valid any more."
        else:
            reason = str(error) or "Research did not begin in time. Call this tool again."
        return reason if self._last is None else f"{reason} {self._describe_place(self._last)}"

    def make_report(self) -> SourcedReport:
        """Return the report of the run as it was left. Raises ToolError: there is none, or not yet."""
        if self._last is None:
            raise ToolError("The research ended before it had begun. Call this tool again.")
        run, report = self._last.run, self._last.record.report
        if run.ended_at is None:
            raise ToolError(f"There is no report yet. {self._describe_place(self._last)}")
        if report is None:
            raise ToolError(WITHHELD if run.has_report else run.problem or "There is no report.")
        return make_report(report, self._asker, run.id)

    def _describe_place(self, opened: OpenedResearch) -> str:
        url = self._asker.find_research_url(opened.run.id)
        return f"It goes on without you as well; the report is kept at {url}."


def make_report(report: FinalReport, asker: McpAsker, research_id: str) -> SourcedReport:
    return SourcedReport(
        report=report.markdown,
        sources=tuple(_make_source(one, asker) for one in report.sources),
        counts=ResearchCountsResponse.model_validate(report.counts),
        not_found=report.not_found,
        notes=report.notes,
        url=asker.find_research_url(research_id),
    )


def _make_source(source: NumberedSource, asker: McpAsker) -> ReportSource:
    return ReportSource(
        number=source.number,
        id=source.document_id,
        title=source.title,
        url=asker.find_url(source.document_id, source.url, source.kind),
    )


class ResearchSteps:
    """What to report of the events of a run; how many sources were found is reported now and then.

    Args:
        read_clock: returns seconds.
    """

    def __init__(self, read_clock: Callable[[], float]) -> None:
        self._read_clock = read_clock
        self._sources: set[str] = set()
        self._told_at: float | None = None

    def describe(self, event: NumberedEvent) -> str | None:
        """Return what to tell of an event; None where there is nothing to tell."""
        match event.name:
            case "source":
                return self._count_source(event.data["source"]["document_id"])
            case "state":
                return _STATES.get(event.data["state"])
            case "resumed":
                return "Going on at the last finished task, after an interruption"
            case "report_started":
                return "Writing the report"
            case _:
                return _describe_tasks(event.name, event.data)

    def _count_source(self, document_id: str) -> str | None:
        self._sources.add(document_id)
        now = self._read_clock()
        if self._told_at is not None and now - self._told_at < SOURCES_PAUSE:
            return None
        self._told_at = now
        return f"Found {pluralize(len(self._sources), 'source')} so far"


def _describe_tasks(name: str, data: Mapping[str, Any]) -> str | None:
    match name:
        case "plan":
            return f"Planned {pluralize(len(data['tasks']), 'task')}"
        case "round" if data["tasks"]:
            return f"Added {pluralize(len(data['tasks']), 'task')}: {data['reason']}"
        case "task_started":
            return f"Task {data['task']['number']} started: {data['task']['question']}"
        case "task_done":
            found = data["failure"] or pluralize(len(data["sources"]), "source")
            return f"Task {data['task']['number']} done: {found}"
        case _:
            return None
