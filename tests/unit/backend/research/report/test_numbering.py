"""One numbering for many reports: dense, in the order of citation, for any text and any sources."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from backend.chat.citations.citation_processor import CitedDocument, SourceKind
from backend.chat.citations.citation_utils import collapse_citations
from backend.chat.citations.marker_parser import Marker, split_markers
from backend.research.record.plan import ResearchTask
from backend.research.record.sources import NumberedSource, SourceText
from backend.research.record.task_report import TaskReport
from backend.research.references.cited_text import keep_markers
from backend.research.report.merged_reports import merge_reports
from backend.research.report.sentence_places import place_cited_sentences, replace_sentences
from connectors.document import Span
from tests.support.research_world import list_markers

PIECES = st.sampled_from(
    ["[1]", "[2]", "[3]", "[1, 2]", "[7]", "[[2]]", "【3】", " ", "\n", "\n\n", "a", "The pump costs 40 EUR", ".", "。",
     "`[1]`", "```\n[2]\n```", "[1](https://a.example)", "(", "[", "]", "\\", "- ", "# ", "| ", "价格", "!"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=16).map("".join)
IDS = st.permutations(["kb:a", "kb:b", "kb:c", "kb:d"]).map(lambda ids: ids[:3])


def make_sources(ids: Sequence[str]) -> tuple[NumberedSource, ...]:
    return tuple(
        NumberedSource(
            number=number,
            kind=SourceKind.DOCUMENT,
            document_id=one,
            title=one,
            url="",
            texts=(SourceText(f"{one} says so."),),
        )
        for number, one in enumerate(ids, 1)
    )


def list_ids(text: str, mapping: dict[int, CitedDocument]) -> list[str]:
    """The documents that a text cites, marker by marker, those of markers that name none left out."""
    found: list[str] = []
    for piece in split_markers(text):
        if isinstance(piece, Marker):
            ids = (mapping[n].document_id for n in piece.numbers if n in mapping)
            found += dict.fromkeys(ids)
    return found


def list_markers_within(span: Span, text: str) -> list[int]:
    """The numbers of the markers of a text within a span of it, which alone might read otherwise: as begun code."""
    found: list[int] = []
    at = 0
    for piece in split_markers(text):
        written = piece.text if isinstance(piece, Marker) else piece
        if isinstance(piece, Marker) and span.start <= at < at + len(written) <= span.end:
            found += piece.numbers
        at += len(written)
    return found


@given(st.lists(st.tuples(TEXTS, IDS), max_size=4))
def test_merged_reports_cite_what_they_cited_before(reports: list[tuple[str, list[str]]]) -> None:
    given_reports = [
        TaskReport(task=ResearchTask(at, f"Number {at}?"), text=text, sources=make_sources(ids))
        for at, (text, ids) in enumerate(reports, 1)
    ]
    merged = merge_reports(given_reports)
    assert list(merged.sources) == list(range(1, len(merged.sources) + 1))
    mapping = dict(merged.mapping)
    for report, one in zip(given_reports, merged.reports, strict=True):
        own = {source.number: source.cited_document for source in report.sources}
        before, after = list_ids(report.text, own), list_ids(one.text, mapping)
        assert list(dict.fromkeys(before)) == list(dict.fromkeys(after))
        assert set(list_markers(one.text)) <= mapping.keys()
    first = list(dict.fromkeys(n for one in merged.reports for n in list_markers(one.text)))
    assert first == sorted(first)


@given(TEXTS, IDS)
@example("[[[2]]]", ["kb:a", "kb:b"])
@example("[see [7]][1]", ["kb:a"])
@example("[[7]a][1][1]", ["kb:a"])
@example("[[7]a][a][1]", ["kb:a"])
def test_the_numbers_of_a_collapsed_text_are_dense_and_ordered(text: str, ids: list[str]) -> None:
    sources = {one.number: one.cited_document for one in make_sources(ids)}
    collapsed = collapse_citations(text, sources)
    first = list(dict.fromkeys(list_markers(collapsed.text)))
    assert first == list(range(1, len(first) + 1)) == list(collapsed.mapping)
    again = collapse_citations(collapsed.text, collapsed.mapping)
    assert (again.text, again.mapping) == (collapsed.text, collapsed.mapping)


@given(TEXTS)
def test_markers_stand_where_they_stood(text: str) -> None:
    """Nothing but markers changes: what is code, a link or text stays as it is."""
    sources = {one.number: one.cited_document for one in make_sources(["kb:a", "kb:b", "kb:c"])}
    collapsed = collapse_citations(text, sources)

    def plain(of: str) -> str:
        pieces = [one for one in split_markers(of) if isinstance(one, str)]
        said = "".join("".join(pieces).replace("\\[7\\]", "").split())
        # Brackets of the text around a marker are read as its own: [[[2]]] becomes [[1]].
        return said.replace("[]", "")

    assert plain(collapsed.text) == plain(text)


@given(TEXTS)
@example("```\n[2]\n```\n[1]")
def test_each_cited_sentence_has_its_place(written: str) -> None:
    mapping = {one.number: one.cited_document for one in make_sources(["kb:a", "kb:b", "kb:c"])}
    cited = keep_markers(written, mapping)
    places = place_cited_sentences(cited.text, mapping)
    assert [n for one in places for n in one.numbers] == [one.number for one in cited.sentences]
    for one in places:
        assert {*one.numbers} <= {*list_markers_within(one.span, cited.text)}
    kept = [(one.span, one.span.of(cited.text)) for one in places]
    assert replace_sentences(cited.text, kept) == cited.text


def test_a_source_of_several_reports_has_one_number_and_all_that_was_read_of_it() -> None:
    old, new = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    one, two = make_sources(["kb:a", "kb:b"])
    first = TaskReport(
        task=ResearchTask(1, "A?"),
        text="A [1].",
        sources=(replace(one, date=old),),
    )
    more = replace(one, number=2, date=new, texts=(SourceText("More."),))
    second = TaskReport(
        task=ResearchTask(2, "B?"),
        text="B [1]. A too [2].",
        sources=(replace(two, number=1), more),
    )
    merged = merge_reports([first, second])
    assert [each.text for each in merged.reports] == ["A [1].", "B [2]. A too [1]."]
    assert merged.sources[1].date == new
    assert [text.text for text in merged.sources[1].texts] == ["kb:a says so.", "More."]
