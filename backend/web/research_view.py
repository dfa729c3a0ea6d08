"""What the page of a research run shows: its tasks with what they found, and the report with its outline and citations."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from backend.api.research_responses import make_opened
from backend.chat.citations.citation_processor import SourceKind
from backend.chat.citations.verification import UNCHECKED, Support
from backend.chat.readable_ids import find_knowledge_page
from backend.research.record.final_report import CheckedCitation, FinalReport
from backend.research.record.sources import NumberedSource
from backend.research.record.task_report import TaskReport
from backend.research.runs.service import OpenedResearch
from backend.schemas.answer import CitationResponse
from backend.schemas.research import OpenedResearchResponse, ResearchTaskResponse
from backend.store.files.file_source import FILES_SOURCE
from backend.web import urls
from backend.web.report_html import CitedHtml, report_html
from backend.web_search.addresses import get_host

_ENDED = frozenset({"done", "stopped", "failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    number: int
    title: str
    link: str
    """Where a person reads it; empty where that is nowhere safe."""
    is_on_web: bool
    is_earlier: bool
    """Research found it out before."""
    host: str
    """Of a page of the web."""
    source: str
    """The name of the source of a document; empty where it says nothing."""
    date: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    task: ResearchTaskResponse
    report: TaskReport | None
    """None until it has ended, or where it is withheld."""
    is_withheld: bool
    """Whether its report rests on sources that the asker may not read."""
    written: CitedHtml | None
    sources: tuple[SourceView, ...]
    citations: str
    """What the cards of its citations say, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    report: FinalReport
    written: CitedHtml
    sources: tuple[SourceView, ...]
    citations: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchView:
    opened: OpenedResearchResponse
    tasks: tuple[TaskView, ...]
    report: ReportView | None

    @property
    def has_ended(self) -> bool:
        return self.opened.run.state in _ENDED


def build_research_view(opened: OpenedResearch) -> ResearchView:
    made = make_opened(opened)
    reports = {one.task.number: one for one in opened.record.reports}
    report = opened.record.report
    return ResearchView(
        opened=made,
        tasks=tuple(
            _view_task(task, reports.get(task.number), opened.withheld_tasks) for task in made.plan
        ),
        report=_view_report(report) if report else None,
    )


def _view_task(
    task: ResearchTaskResponse, report: TaskReport | None, withheld: frozenset[int]
) -> TaskView:
    sources = report.sources if report else ()
    citations = [_make_citation(one, UNCHECKED) for one in sources]
    text = report.text if report else ""
    return TaskView(
        task=task,
        report=report,
        is_withheld=task.number in withheld,
        written=report_html(text, citations, f"task-{task.number}") if text else None,
        sources=tuple(map(_view_source, sources)),
        citations=_write_cards(citations, sources),
    )


def _view_report(report: FinalReport) -> ReportView:
    citations = _make_citations(report.citations, report.sources)
    return ReportView(
        report=report,
        written=report_html(report.text, citations, "part"),
        sources=tuple(map(_view_source, report.sources)),
        citations=_write_cards(citations, report.sources),
    )


def _make_citations(
    checked: Sequence[CheckedCitation], sources: Sequence[NumberedSource]
) -> list[CitationResponse]:
    by_number = {one.number: one for one in sources}
    return [
        _make_citation(by_number[one.number], one.support or UNCHECKED)
        for one in checked
        if one.number in by_number
    ]


def _make_citation(source: NumberedSource, support: Support) -> CitationResponse:
    return CitationResponse(
        number=source.number,
        document_id=source.document_id,
        title=source.title,
        link=source.url,
        kind=source.kind.value,
        quote=support.quote,
        section=support.section,
        span=(support.span.start, support.span.end),
        score=support.score,
        verdict=support.verdict.value,
    )


def _write_cards(citations: Sequence[CitationResponse], sources: Sequence[NumberedSource]) -> str:
    by_number = {one.number: one for one in sources}
    return json.dumps([_make_card(one, by_number[one.number]) for one in citations])


def _make_card(citation: CitationResponse, source: NumberedSource) -> dict[str, str | None]:
    return {
        "title": citation.title,
        "source": _name_source(source),
        "date": source.date.isoformat() if source.date else None,
        "quote": citation.quote,
        "verdict": citation.verdict,
        "kind": citation.kind,
        "link": citation.link,
    }


def _name_source(source: NumberedSource) -> str:
    """Return the name of a source, with which its ids begin; that of files which people keep says nothing to others."""
    if source.kind in (SourceKind.WEB, SourceKind.RESEARCH):
        return ""
    name = source.document_id.partition(":")[0]
    return "" if name == FILES_SOURCE else name


def _view_source(source: NumberedSource) -> SourceView:
    is_web = source.kind is SourceKind.WEB
    is_earlier = source.kind is SourceKind.RESEARCH
    find_page = find_knowledge_page if is_earlier else urls.document
    document = find_page(source.document_id)
    return SourceView(
        number=source.number,
        title=source.title or source.url or source.document_id,
        link=(urls.elsewhere(source.url) or "") if is_web else document,
        is_on_web=is_web,
        is_earlier=is_earlier,
        host=(get_host(source.url) or "") if is_web else "",
        source=_name_source(source),
        date=source.date,
    )
