"""A report as it is shown: its text, contradictions, what was not found, how it was checked, its sources."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from backend.chat.citations.citation_processor import SourceKind
from backend.chat.citations.verification import Verdict
from backend.research.record.final_report import Contradiction, FinalReport, ReportCounts
from backend.research.record.sources import NumberedSource
from backend.research.references.reference_markers import MarkerStyle, quote_on_one_line
from backend.research.report.footnotes import write_footnote_markers
from backend.research.report.report_texts import TEXTS, ReportTexts
from backend.web_search.tool_texts import Language
from indexing.text.markdown_links import escape_markdown, safe_link

_QUOTED_FIRST = {Verdict.VERBATIM: 0, Verdict.SUPPORTED: 1, Verdict.WEAK: 2}


def write_markdown(report: FinalReport, language: Language) -> str:
    """Compose the report of its parts; nothing of a source can be read as markup."""
    texts = TEXTS[language]
    listed = [f"- [{one.number}] {_name_source(one, texts)}" for one in report.sources]
    sources = _write_section(texts.sources, listed)
    return _join_parts(report.text, *_write_findings(report, texts, MarkerStyle.BRACKETS), sources)


def export_markdown(report: FinalReport, language: Language) -> str:
    """Compose the report as a file, its sources as footnotes: title, address, date, and a quote of what they were checked by."""
    texts = TEXTS[language]
    text = write_footnote_markers(report.text, texts.table_sources)
    quotes = _choose_quotes(report)
    defined = [
        f"{MarkerStyle.FOOTNOTES.write(one.number)}: {_name_source(one, texts)}{quotes.get(one.number, '')}"
        for one in report.sources
    ]
    findings = _write_findings(report, texts, MarkerStyle.FOOTNOTES)
    return _join_parts(text, *findings, "\n".join(defined)) + "\n"


def _join_parts(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _write_findings(report: FinalReport, texts: ReportTexts, style: MarkerStyle) -> Iterator[str]:
    """Yield what stands between the text and its sources."""
    sources = {one.number: one for one in report.sources}
    listed = [_write_contradiction(one, sources, texts, style) for one in report.contradictions]
    yield _write_section(texts.contradictions, listed)
    yield _write_section(texts.not_found, [f"- {_to_line(one)}" for one in report.not_found])
    yield _write_section(texts.notes, [f"- {_to_line(one)}" for one in report.notes])
    yield _write_section(texts.checks, [write_counts(report.counts, texts)])


def _choose_quotes(report: FinalReport) -> dict[int, str]:
    """Return a quote of each source that has one: of its citations, that which the source bears out best."""
    checked = [(one.number, one.support) for one in report.citations if one.support]
    ranked = sorted(checked, key=lambda one: _QUOTED_FIRST.get(one[1].verdict, len(_QUOTED_FIRST)))
    return {
        number: f": {quote_on_one_line(support.quote)}"
        for number, support in reversed(ranked)
        if support.quote.strip()
    }


def write_counts(counts: ReportCounts, texts: ReportTexts) -> str:
    return texts.counts.format(**asdict(counts))


def _write_section(heading: str, lines: Sequence[str]) -> str:
    return "\n".join((f"## {heading}", "", *lines)) if lines else ""


def _write_contradiction(
    one: Contradiction,
    sources: Mapping[int, NumberedSource],
    texts: ReportTexts,
    style: MarkerStyle,
) -> str:
    lines = (
        f"  - {_write_statement(each.says, sources[each.number], texts)} {style.write(each.number)}"
        for each in one.statements
    )
    return "\n".join((f"- {_to_line(one.about)}", *lines))


def _write_statement(says: str, source: NumberedSource, texts: ReportTexts) -> str:
    """Say who says what, as of which date."""
    title, date = _to_line(source.title), _write_date(source, texts)
    return texts.says.format(title=title, date=date, says=_to_line(says))


def _name_source(source: NumberedSource, texts: ReportTexts) -> str:
    title = _to_line(source.title) or _to_line(source.url) or _to_line(source.document_id)
    link = safe_link(source.url)
    named = f"[{title}]({link})" if link else title
    return f"{named}, {_write_date(source, texts)}"


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
