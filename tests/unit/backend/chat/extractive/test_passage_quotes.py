"""Quotes of passages: verbatim, in the text of their section, and marked where they answer."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from backend.chat.extractive.candidate_sentences import find_candidates
from backend.chat.extractive.passage_quotes import QUOTE_CHARACTERS, quote_passage
from backend.chat.passages import QuotedPassage, TextRun
from backend.search.models import DocumentNumbers, InferenceSection
from connectors.document import Span
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import Evidence, Hit
from tests.support.chunks import chunk

DOCK = "# Dock\n\nThe dock is grey. It charges overnight. Ask the lab for help."


def quote(held: Chunk, text: str, *, answering: bool) -> QuotedPassage:
    """Quote the candidate with this text."""
    best = Hit(held, 1.0, Evidence(cosine=0.5), ())
    found = find_candidates([InferenceSection((held,), best, (best,))])
    (one, *_) = [each for each in found if each.text == text]
    return quote_passage(one, 0.12345, [one.span] if answering else [], DocumentNumbers())


def test_the_neighbours_are_quoted_and_the_answer_is_highlighted() -> None:
    shown = quote(chunk("a", 0, DOCK), "Ask the lab for help.", answering=True)
    assert shown.quote == "The dock is grey. It charges overnight. Ask the lab for help."
    assert shown.runs == (
        TextRun("The dock is grey. It charges overnight. "),
        TextRun("Ask the lab for help.", highlighted=True),
    )
    assert (shown.number, shown.score) == (1, 0.1235)


def test_of_a_table_a_row_is_quoted_alone_and_read_with_its_columns() -> None:
    rows = "| Part | Price |\n|---|---|\n| Lens cover | 40 |\n| Grey dock | 90 |"
    shown = quote(chunk("a", 0, rows, embedded_text=rows), "| Grey dock | 90 |", answering=False)
    assert shown.quote == "| Grey dock | 90 |"
    assert shown.runs == (TextRun("Part: Grey dock; Price: 90"),)


def test_a_quote_is_as_long_as_fits() -> None:
    text = " ".join(f"Shelf {n} holds the spare parts of machine {n}." for n in range(100))
    shown = quote(
        chunk("a", 0, text), "Shelf 50 holds the spare parts of machine 50.", answering=True
    )
    assert QUOTE_CHARACTERS - 100 < len(shown.quote) <= QUOTE_CHARACTERS


def test_scripts_without_blanks_are_joined_without_blanks() -> None:
    text = "入口在左边。请先登记。"
    shown = quote(chunk("a", 0, text), "请先登记。", answering=False)
    assert shown.runs == (TextRun(text),)


def test_the_place_is_where_the_headings_lead_or_the_page() -> None:
    headed = chunk("a", 0, DOCK, title="Manual", heading_path=("Manual", "Tools", "Dock"))
    paged = chunk("a", 0, DOCK, title="Manual", page=7)
    text = "The dock is grey."
    assert quote(headed, text, answering=False).place == "Tools › Dock"
    assert quote(paged, text, answering=False).place == "page 7"


@given(
    text=st.text(alphabet="Ab1 .?\n|#。-", max_size=200),
    start=st.integers(0, 100),
    data=st.data(),
)
def test_a_quote_stands_at_its_span_and_holds_what_is_highlighted(
    text: str, start: int, data: st.DataObject
) -> None:
    held = replace(
        chunk("a", 0, text), section=3, span=Span(start, start + len(text)), embedded_text=text
    )
    best = Hit(held, 1.0, Evidence(cosine=0.5), ())
    found = find_candidates([InferenceSection((held,), best, (best,))])
    if not found:
        return
    one = data.draw(st.sampled_from(found))
    shown = quote_passage(one, 0.5, [one.span], DocumentNumbers())
    assert (" " * start + text)[shown.span.start : shown.span.end] == shown.quote
    assert shown.span.start <= one.span.start < one.span.end <= shown.span.end
    assert any(run.highlighted for run in shown.runs)
