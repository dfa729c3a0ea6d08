"""Research runs as they are returned: nothing of what rests on sources that the asker may not read."""

from backend.api.list_positions import format_position, read_position
from backend.conversations.answer_gate import WITHHELD
from backend.research.runs.service import OpenedResearch, ResearchPage, ResearchService
from backend.schemas.research import (
    OpenedResearchResponse,
    ResearchReportResponse,
    ResearchResponse,
    ResearchRunsResponse,
    ResearchTaskResponse,
    TaskReportResponse,
)
from backend.store.chat.conversations import ListPosition
from backend.store.research.research_runs import ResearchRun


def find_position(given: str | None) -> ListPosition | None:
    """Read a position in the list, if one is given. Raises Problem: 422."""
    return None if given is None else ListPosition(*read_position(given))


def make_page(page: ResearchPage, research: ResearchService) -> ResearchRunsResponse:
    end = page.next
    return ResearchRunsResponse(
        runs=tuple(_make_run(run, research) for run in page.runs),
        next=None if end is None else format_position(end.updated_at, end.id),
    )


def _make_run(run: ResearchRun, research: ResearchService) -> ResearchResponse:
    return ResearchResponse.from_run(run, research.find_place(run), research.is_own(run))


def make_opened(opened: OpenedResearch) -> OpenedResearchResponse:
    record = opened.record
    return OpenedResearchResponse(
        run=ResearchResponse.from_run(opened.run, opened.place, opened.is_own),
        clarification=record.clarification.questions if record.clarification else (),
        plan=tuple(map(ResearchTaskResponse.model_validate, record.tasks)),
        reports=tuple(map(TaskReportResponse.from_report, record.reports)),
        report=ResearchReportResponse.from_report(record.report) if record.report else None,
        withheld=opened.withheld,
        notice=WITHHELD if opened.withheld else None,
    )
