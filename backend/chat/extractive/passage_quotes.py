"""Quote the passages that come closest to a question: a few sentences around the best one of each chunk."""

from collections.abc import Sequence

from backend.chat.extractive.candidate_sentences import Candidate, split_readable
from backend.chat.passages import QuotedPassage, TextRun
from backend.search.models import DocumentNumbers
from connectors.document import Span
from indexing.chunking.chunk import Chunk
from indexing.text.markdown_links import safe_link

QUOTE_CHARACTERS = 320
"""Neighbouring sentences are added up to this length."""


def quote_passage(
    candidate: Candidate, score: float, answering: Sequence[Span], numbers: DocumentNumbers
) -> QuotedPassage:
    """Quote a candidate with the sentences around it.

    Args:
        answering: spans of the section that are highlighted; they are quoted whole.
    """
    chunk = candidate.chunk
    sentences = _surrounding_sentences(candidate, answering)
    span = Span(sentences[0].span.start, sentences[-1].span.end)
    return QuotedPassage(
        number=numbers.assign(chunk.document_id),
        document_id=chunk.document_id,
        title=chunk.title,
        link=safe_link(chunk.link),
        place=_format_place(chunk),
        quote=chunk.text[span.start - chunk.span.start : span.end - chunk.span.start],
        section=chunk.section,
        span=span,
        runs=_highlight_runs(sentences, answering),
        score=round(score, 4),
    )


def _surrounding_sentences(candidate: Candidate, answering: Sequence[Span]) -> list[Candidate]:
    """Return the candidate's sentences and as many after and before them as fit; of a table, its row alone."""
    around = list(split_readable(candidate.section, candidate.chunk))
    spans = (candidate.span, *answering)
    within = Span(min(one.start for one in spans), max(one.end for one in spans))
    inside = [at for at, one in enumerate(around) if _overlaps(one.span, within)]
    first, last = inside[0], inside[-1]
    if candidate.text.startswith("|"):
        return around[first : last + 1]
    while last + 1 < len(around) and _fits(around[first], around[last + 1]):
        last += 1
    while first and _fits(around[first - 1], around[last]):
        first -= 1
    return around[first : last + 1]


def _fits(first: Candidate, last: Candidate) -> bool:
    is_prose = not (first.text.startswith("|") or last.text.startswith("|"))
    return is_prose and last.span.end - first.span.start <= QUOTE_CHARACTERS


def _overlaps(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _highlight_runs(
    sentences: Sequence[Candidate], answering: Sequence[Span]
) -> tuple[TextRun, ...]:
    """Format the sentences; neighbours that are highlighted alike are one run, and a highlighted one begins with its first word."""
    runs: list[TextRun] = []
    end = sentences[0].span.start
    for one in sentences:
        marked = any(_overlaps(one.span, span) for span in answering)
        blank = " " if one.span.start > end else ""
        end = one.span.end
        if runs and (marked or runs[-1].highlighted is marked):
            runs[-1] = TextRun(runs[-1].text + blank, runs[-1].highlighted)
            blank = ""
        if runs and runs[-1].highlighted is marked:
            runs[-1] = TextRun(runs[-1].text + one.display_text, marked)
        else:
            runs.append(TextRun(blank + one.display_text, marked))
    return tuple(runs)


def _format_place(chunk: Chunk) -> str:
    headings = [one for one in chunk.heading_path if one != chunk.title]
    if headings:
        return " › ".join(headings)
    return f"page {chunk.page}" if chunk.page else ""
