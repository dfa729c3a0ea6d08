"""Build the references of a text that was written without any: which sentence rests on which passage of which source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from backend.research.chunk_likeness import compare_chunks
from backend.research.chunk_matching import choose_matches
from backend.research.citable_source import CitableSource, Picture, SourceChunk, split_sources
from backend.research.citable_text import split_answer
from backend.research.knowledge import Reference
from backend.research.reference_markers import MarkerStyle, NumberedReference, insert_markers
from backend.research.text_chunks import clean_chunk
from connectors.document import Span
from indexing.embedding.understood_embedder import UnderstoodEmbedder
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import is_visible

Built = TypeVar("Built")


@dataclass(frozen=True, slots=True)
class PictureReference:
    """A picture of a source that shows what a part of the text says."""

    url: str
    text: str
    """What is said of the picture."""
    title: str
    """Of its source."""
    relevance_score: float
    answer_chunk: str
    answer_chunk_position: Span


@dataclass(frozen=True, slots=True)
class ReferencedText:
    text: str
    """With its markers."""
    references: tuple[NumberedReference, ...]
    pictures: tuple[PictureReference, ...]
    """In the order of the text, which has no markers for them."""
    notes: tuple[str, ...]
    """What was left out, and why."""


@dataclass(frozen=True, slots=True)
class _ShownPicture:
    source: CitableSource
    picture: Picture


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    chunks: Sequence[Span]
    model: UnderstoodEmbedder
    deadline: Deadline

    def match(
        self,
        candidates: Sequence[str],
        build: Callable[[Span, int, float], Built],
    ) -> list[Built]:
        """Build what is wanted of each chunk and the candidate that was chosen for it, in the order of the text."""
        if not self.chunks or not candidates:
            return []
        chunks = [chunk.of(self.text) for chunk in self.chunks]
        found = compare_chunks(chunks, candidates, self.model, self.deadline)
        return [
            build(self.chunks[one.answer], one.source, one.score) for one in choose_matches(found)
        ]


def build_references(
    text: str,
    sources: Sequence[CitableSource],
    model: UnderstoodEmbedder,
    style: MarkerStyle,
    deadline: Deadline,
) -> ReferencedText:
    """Return the text with a marker behind each part that a source says, at most ten.

    Nothing of the text changes but for the markers.

    Args:
        text: Markdown or plain text.

    Raises:
        DeadlineExceededError: the time was too short even for comparing words.
    """
    answer = _Answer(text, split_answer(text), model, deadline)
    chunks = split_sources(sources)
    references = answer.match(
        [chunk.text for chunk in chunks],
        lambda span, at, score: _make_reference(text, span, chunks[at], score),
    )
    shown = [_ShownPicture(source, one) for source in sources for one in source.pictures]
    described = [one for one in shown if is_visible(clean_chunk(one.picture.text))]
    pictures = answer.match(
        [one.picture.text for one in described],
        lambda span, at, score: _make_picture_reference(text, span, described[at], score),
    )
    marked, numbered = insert_markers(text, references, style)
    notes = _describe_left_out(len(shown) - len(described))
    return ReferencedText(marked, numbered, tuple(pictures), notes)


def _make_reference(text: str, span: Span, chunk: SourceChunk, score: float) -> Reference:
    source = chunk.source
    return Reference(
        exact_quote=chunk.text,
        url=source.url,
        document_id=source.document_id,
        title=source.title,
        date_time=source.date_time,
        relevance_score=score,
        answer_chunk=span.of(text),
        answer_chunk_position=span,
        section=chunk.section,
        span=chunk.span,
    )


def _make_picture_reference(
    text: str, span: Span, shown: _ShownPicture, score: float
) -> PictureReference:
    return PictureReference(
        shown.picture.url, shown.picture.text, shown.source.title, score, span.of(text), span
    )


def _describe_left_out(pictures: int) -> tuple[str, ...]:
    if not pictures:
        return ()
    which = (
        "1 picture of the sources has"
        if pictures == 1
        else f"{pictures} pictures of the sources have"
    )
    return (f"{which} no text to compare with, and no reference.",)
