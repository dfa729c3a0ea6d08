"""A report as a file: its sources as footnotes of Markdown, or under their numbers in a Word document."""

import io
from dataclasses import replace
from datetime import UTC, datetime

import docx
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from backend.chat.citations.citation_processor import SourceKind
from backend.chat.citations.verification import Support, Verdict
from backend.research.record.final_report import (
    CheckedCitation,
    Contradiction,
    FinalReport,
    ReportCounts,
    SourceStatement,
)
from backend.research.record.sources import NumberedSource
from backend.research.report.report_markdown import export_markdown, write_markdown
from backend.research.runs.report_docx import write_docx
from connectors.document import Span

TABLE = "| Country | Weeks |\n|---|---|\n| Norway | 49 [2] |"


def make_source(number: int, title: str = "Leave", **facts: object) -> NumberedSource:
    values: dict[str, object] = {
        "kind": SourceKind.WEB,
        "document_id": f"https://a.example/{number}",
        "url": f"https://a.example/{number}",
        **facts,
    }
    return NumberedSource(number=number, title=title, **values)  # type: ignore[arg-type]


def make_citation(number: int, quote: str, verdict: Verdict) -> CheckedCitation:
    support = Support(quote, 0, Span(0, len(quote)), 0.9, verdict)
    return CheckedCitation(number, "Parents have 26 weeks.", "Parents have 26 weeks.", support)


REPORT = FinalReport(
    markdown="",
    text=f"# Leave\n\nParents have 26 weeks [1]. It is long.\n\n{TABLE}",
    sources=(
        make_source(1, date=datetime(2026, 1, 12, tzinfo=UTC)),
        make_source(2, "Norway"),
        make_source(3, "Notes", url=""),
    ),
    citations=(
        make_citation(1, "Nobody knows how long.", Verdict.CONTRADICTED),
        make_citation(1, "Leave is 26 *weeks*.", Verdict.SUPPORTED),
        make_citation(1, "Leave is long.", Verdict.WEAK),
        make_citation(2, "", Verdict.UNCHECKED),
    ),
    counts=ReportCounts(sentences=3, uncited=1, citations=4, supported=1, weak=1, contradicted=1, unchecked=1),
    not_found=("How many take it: [1] says nothing.",),
    contradictions=(
        Contradiction("The length", (SourceStatement(1, "26 weeks"), SourceStatement(3, "24 weeks"))),
    ),
)  # fmt: skip


def test_an_export_has_footnotes_with_title_address_date_and_quote() -> None:
    assert (
        export_markdown(REPORT, "en")
        == f"""# Leave

Parents have 26 weeks [^1]. It is long.

{TABLE}

Sources of this table: [^2]

## Where sources disagree

- The length
  - Leave (2026-01-12): 26 weeks [^1]
  - Notes (no date): 24 weeks [^3]

## Not found

- How many take it: \\[1\\] says nothing.

## Checked citations

Sentences: 3, of them without a source: 1. Citations: 4, of them supported: 1, weak: 1, unsupported: 0, contradicted: 1, unchecked: 1.

[^1]: [Leave](https://a.example/1), 2026-01-12: “Leave is 26 \\*weeks\\*.”
[^2]: [Norway](https://a.example/2), no date
[^3]: Notes, no date
"""
    )


def test_an_export_is_in_the_language_of_its_person() -> None:
    written = export_markdown(REPORT, "zh")
    assert f"{TABLE}\n\n本表来源： [^2]\n" in written
    assert "[^3]: Notes, 无日期" in written


def test_a_word_document_has_numbers_and_says_how_many_sentences_have_no_source() -> None:
    report = replace(REPORT, markdown=write_markdown(REPORT, "en"))
    lines = [one.text for one in docx.Document(io.BytesIO(write_docx(report))).paragraphs]
    assert "Parents have 26 weeks [1]. It is long." in lines
    assert any(line.startswith("Sentences: 3, of them without a source: 1.") for line in lines)
    assert lines[-3:] == [
        "[1] Leave (https://a.example/1), 2026-01-12",
        "[2] Norway (https://a.example/2), no date",
        "[3] Notes, no date",
    ]


_ANY = st.text(max_size=40) | st.sampled_from(
    ("[^1]: x", "](https://evil.example)", "<script>", "\n\n# x", "`", "![x](y)", "| a |\n|--|")
)


@given(_ANY, _ANY)
def test_nothing_of_a_source_is_markup_in_a_footnote(title: str, quote: str) -> None:
    report = FinalReport(
        markdown="",
        text="So [1].",
        sources=(make_source(1, title),),
        citations=(make_citation(1, quote, Verdict.SUPPORTED),),
    )
    *_, definition = export_markdown(report, "en").splitlines()
    assert definition.startswith("[^1]: [")
    rendered = MarkdownIt("commonmark").render(definition.removeprefix("[^1]: "))
    assert rendered.count("<a ") == 1
    assert all(
        tag not in rendered for tag in ("<img", "<script", "<h1", "<code", "<em", 'evil.example">')
    )
