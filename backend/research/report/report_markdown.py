"""A report as it is shown: its text, contradictions, what was not found, how it was checked, its sources."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from backend.chat.citations.citation_processor import SourceKind
from backend.research.record.final_report import Contradiction, FinalReport, ReportCounts
from backend.research.record.sources import NumberedSource
from backend.research.report.report_texts import TEXTS, ReportTexts
from backend.web_search.tool_texts import Language
from indexing.text.markdown_links import escape_markdown, safe_link


def write_markdown(report: FinalReport, language: Language) -> str:
    """Compose the report of its parts; nothing of a source can be read as markup."""
    texts = TEXTS[language]
    sources = {one.number: one for one in report.sources}
    listed = [_write_contradiction(one, sources, texts) for one in report.contradictions]
    parts = (
        report.text,
        _write_section(texts.contradictions, listed),
        _write_section(texts.not_found, [f"- {_to_line(one)}" for one in report.not_found]),
        _write_section(texts.notes, [f"- {_to_line(one)}" for one in report.notes]),
        _write_section(texts.checks, [write_counts(report.counts, texts)]),
        _write_section(texts.sources, [_write_source(one, texts) for one in report.sources]),
    )
    return "\n\n".join(filter(None, parts))


def write_counts(counts: ReportCounts, texts: ReportTexts) -> str:
    return texts.counts.format(**asdict(counts))


def _write_section(heading: str, lines: Sequence[str]) -> str:
    return "\n".join((f"## {heading}", "", *lines)) if lines else ""


def _write_contradiction(
    one: Contradiction, sources: dict[int, NumberedSource], texts: ReportTexts
) -> str:
    lines = (
        f"  - {_write_statement(each.says, sources[each.number], texts)} [{each.number}]"
        for each in one.statements
    )
    return "\n".join((f"- {_to_line(one.about)}", *lines))


def _write_statement(says: str, source: NumberedSource, texts: ReportTexts) -> str:
    """Say who says what, as of which date."""
    title, date = _to_line(source.title), _write_date(source, texts)
    return texts.says.format(title=title, date=date, says=_to_line(says))


def _write_source(source: NumberedSource, texts: ReportTexts) -> str:
    title = _to_line(source.title) or _to_line(source.url) or _to_line(source.document_id)
    link = safe_link(source.url)
    named = f"[{title}]({link})" if link else title
    return f"- [{source.number}] {named}, {_write_date(source, texts)}"


def _write_date(source: NumberedSource, texts: ReportTexts) -> str:
    if source.date is None:
        return texts.undated
    if source.kind is SourceKind.RESEARCH:
        return texts.found_earlier.format(date=f"{source.date:%Y-%m-%d}")
    return f"{source.date:%Y-%m-%d}"


def _to_line(text: str) -> str:
    return escape_markdown(" ".join(text.split()))


def split_markdown(markdown: str) -> Iterable[str]:
    """Cut a report into the pieces that it is shown in: its paragraphs."""
    paragraphs = markdown.split("\n\n")
    yield from (f"{one}\n\n" for one in paragraphs[:-1])
    yield paragraphs[-1]
