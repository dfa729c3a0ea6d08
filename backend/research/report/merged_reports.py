"""Bring the reports of tasks under one numbering."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from backend.chat.citations.citation_processor import CitedDocument
from backend.chat.citations.citation_utils import collapse_citations
from backend.research.model_calls import cut_to_tokens
from backend.research.record.sources import NumberedSource
from backend.research.record.task_report import TaskReport
from backend.research.references.cited_text import describe_source
from indexing.embedding.token_counting import CountTokens


@dataclass(frozen=True, slots=True)
class MergedReport:
    question: str
    text: str
    """With markers of the common numbering."""
    gaps: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class MergedReports:
    reports: tuple[MergedReport, ...]
    sources: Mapping[int, NumberedSource]
    """All that a report cites, each once, by its number in all of them."""

    @property
    def mapping(self) -> Mapping[int, CitedDocument]:
        return {number: one.cited_document for number, one in self.sources.items()}

    def describe(self, room: int, count_tokens: CountTokens) -> dict[str, object]:
        """Describe the reports and their sources to a model, each report in an equal part of the room."""
        share = room // max(1, len(self.reports))
        reports = [
            {"question": one.question, "report": cut_to_tokens(one.text, share, count_tokens)}
            for one in self.reports
        ]
        return {"reports": reports, "sources": list(map(describe_source, self.sources.values()))}


def merge_reports(reports: Iterable[TaskReport]) -> MergedReports:
    """Merge the reports in their order; a source that several cite has one number, and all that was read of it."""
    merged: list[MergedReport] = []
    mapping: Mapping[int, CitedDocument] = {}
    cited: dict[str, NumberedSource] = {}
    for report in reports:
        own = {one.number: one.cited_document for one in report.sources}
        collapsed = collapse_citations(report.text, own, mapping)
        mapping = collapsed.mapping
        merged.append(MergedReport(report.task.question, collapsed.text, report.gaps, report.note))
        for source in report.sources:
            cited[source.document_id] = _join(cited.get(source.document_id), source)
    return MergedReports(tuple(merged), renumber_sources(cited, mapping))


def renumber_sources(
    sources: Mapping[str, NumberedSource], mapping: Mapping[int, CitedDocument]
) -> dict[int, NumberedSource]:
    """Return the sources by the numbers that a mapping gives their documents, in that order."""
    return {
        number: replace(sources[document.document_id], number=number)
        for number, document in sorted(mapping.items())
    }


def _join(known: NumberedSource | None, other: NumberedSource) -> NumberedSource:
    if known is None:
        return other
    texts = tuple(dict.fromkeys((*known.texts, *other.texts)))
    dates = [one.date for one in (known, other) if one.date]
    return replace(known, date=max(dates, default=None), texts=texts)


def write_reports_themselves(reports: Sequence[MergedReport]) -> str:
    """Return a report that no model wrote: those of the tasks, one after another."""
    return "\n\n".join(f"## {one.question}\n\n{one.text}" for one in reports)
