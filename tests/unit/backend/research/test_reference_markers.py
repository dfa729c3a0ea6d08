"""Markers in a text and the list below it, which nothing of a source can break out of."""

from datetime import UTC, datetime

from markdown_it import MarkdownIt

from backend.research.knowledge_items import Reference
from backend.research.references.reference_markers import (
    LONGEST_QUOTE,
    MarkerStyle,
    Numbered,
    PictureReference,
    insert_markers,
    write_reference_list,
)
from connectors.document import Span


def make_reference(end: int = 3, **facts: object) -> Reference:
    values: dict[str, object] = {
        "exact_quote": "A quote.",
        "url": "https://a.example/b c",
        "title": "Title",
        "relevance_score": 0.9,
        "answer_chunk": "abc",
        "answer_chunk_position": Span(0, end),
        "span": Span(0, 8),
        **facts,
    }
    return Reference(**values)  # type: ignore[arg-type]


def test_markers_are_numbered_by_place_past_numbers_that_are_taken() -> None:
    text = "abc [2] def [4, ^5] [ 6 – 7 ] [x] (1)"
    marked, numbered = insert_markers(
        text, [make_reference(3), make_reference(11)], MarkerStyle.BRACKETS
    )
    assert marked == "abc[1] [2] def[3] [4, ^5] [ 6 – 7 ] [x] (1)"
    assert [one.marker.of(marked) for one in numbered] == ["[1]", "[3]"]
    assert insert_markers(text, [], MarkerStyle.BRACKETS) == (text, ())


def test_the_list_names_title_address_date_and_quote() -> None:
    dated = make_reference(date_time=datetime(2026, 3, 1, tzinfo=UTC))
    numbered = [Numbered(1, Span(3, 6), dated)]
    line = "[Title](https://a.example/b%20c), 2026-03-01: “A quote.”"
    assert write_reference_list(numbered, MarkerStyle.BRACKETS) == f"- [1] {line}"
    assert write_reference_list(numbered, MarkerStyle.FOOTNOTES) == f"[^1]: {line}"


def test_a_long_quote_is_cut_in_the_list() -> None:
    numbered = [Numbered(1, Span(3, 6), make_reference(exact_quote="x" * 1_000))]
    listed = write_reference_list(numbered, MarkerStyle.BRACKETS)
    assert listed.endswith("x…”")
    assert len(listed) < LONGEST_QUOTE + 100


def test_a_picture_is_listed_with_its_address_and_what_is_said_of_it() -> None:
    picture = PictureReference(
        url="https://a.example/a b.png",
        text="Days\nby *grade*",
        title="Title",
        relevance_score=0.8,
        answer_chunk="abc",
        answer_chunk_position=Span(0, 3),
    )
    marked, numbered = insert_markers("abc", [make_reference(), picture], MarkerStyle.FOOTNOTES)
    assert marked == "abc[^1][^2]"
    assert write_reference_list(numbered, MarkerStyle.FOOTNOTES) == (
        "[^1]: [Title](https://a.example/b%20c): “A quote.”\n"
        "[^2]: [Title](https://a.example/a%20b.png), a picture: “Days by \\*grade\\*”"
    )


def test_no_source_writes_markup_into_the_list() -> None:
    hostile = make_reference(
        title="x](https://evil.example) ![p](q)",
        url="javascript:alert(1)",
        exact_quote="<script>\n\n# Heading\n\n[1]: https://evil.example\x1b[2J",
    )
    listed = write_reference_list([Numbered(1, Span(0, 3), hostile)], MarkerStyle.BRACKETS)
    shown = MarkdownIt("commonmark").render(listed)
    assert all(tag not in shown for tag in ("<a", "<img", "<script", "<h1"))
    assert "\x1b" not in listed
    assert len(listed.splitlines()) == 1
    nameless = make_reference(title=" ", url="")
    assert "Untitled: “" in write_reference_list(
        [Numbered(1, Span(0, 3), nameless)], MarkerStyle.BRACKETS
    )
