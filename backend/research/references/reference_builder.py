"""Build the references of a text that was written without any: which sentence rests on which passage of which source."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar
from urllib.parse import urljoin

from backend.research.knowledge_items import Reference
from backend.research.references.chunk_likeness import compare_chunks
from backend.research.references.chunk_matching import Match, choose_matches
from backend.research.references.citable_source import (
    CitableSource,
    Picture,
    SourceChunk,
    split_sources,
)
from backend.research.references.citable_text import split_answer
from backend.research.references.reference_markers import (
    MarkerStyle,
    Numbered,
    NumberedCitation,
    NumberedPicture,
    NumberedReference,
    PictureReference,
    insert_markers,
)
from backend.research.references.text_chunks import clean_chunk
from connectors.document import Span
from indexing.embedding.language_support import EmbedderWithLanguages
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import is_visible

Cited = TypeVar("Cited", Reference, PictureReference)


@dataclass(frozen=True, slots=True)
class ReferencedText:
    text: str
    """With its markers."""
    citations: tuple[NumberedCitation, ...]
    """Passages and pictures under one numbering, in the order of the text."""
    notes: tuple[str, ...]
    """What was left out, and why."""

    @property
    def references(self) -> tuple[NumberedReference, ...]:
        return tuple(_select(self.citations, Reference))

    @property
    def pictures(self) -> tuple[NumberedPicture, ...]:
        return tuple(_select(self.citations, PictureReference))


def _select(citations: Iterable[NumberedCitation], kind: type[Cited]) -> Iterator[Numbered[Cited]]:
    for one in citations:
        if isinstance(one.reference, kind):
            yield Numbered(one.number, one.marker, one.reference)


@dataclass(frozen=True, slots=True)
class _ShownPicture:
    source: CitableSource
    picture: Picture


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    chunks: Sequence[Span]

    def refer(self, match: Match, chunk: SourceChunk) -> Reference:
        source, span = chunk.source, self.chunks[match.answer]
        return Reference(
            exact_quote=chunk.text,
            url=source.url,
            document_id=source.document_id,
            title=source.title,
            date_time=source.date_time,
            relevance_score=match.score,
            answer_chunk=span.of(self.text),
            answer_chunk_position=span,
            section=chunk.section,
            span=chunk.span,
        )

    def illustrate(self, match: Match, shown: _ShownPicture) -> PictureReference:
        span = self.chunks[match.answer]
        return PictureReference(
            url=_resolve(shown.source.url, shown.picture.url),
            text=shown.picture.text,
            title=shown.source.title,
            relevance_score=match.score,
            answer_chunk=span.of(self.text),
            answer_chunk_position=span,
        )


def _resolve(base: str, url: str) -> str:
    """Return the whole address of a picture that a source names by a part of it."""
    try:
        return urljoin(base, url)
    except ValueError:
        return url


def build_references(
    text: str,
    sources: Sequence[CitableSource],
    model: EmbedderWithLanguages,
    style: MarkerStyle,
    deadline: Deadline,
) -> ReferencedText:
    """Return the text with a marker behind each part that a source says or one of its pictures shows, at most ten of either.

    Nothing of the text changes but for the markers.

    Args:
        text: Markdown or plain text.

    Raises:
        DeadlineExceededError: the time was too short even for comparing words.
    """
    answer, chunks = _Answer(text, split_answer(text)), split_sources(sources)
    shown = [_ShownPicture(source, one) for source in sources for one in source.pictures]
    described = [one for one in shown if is_visible(clean_chunk(one.picture.text))]
    groups = [[one.text for one in chunks], [one.picture.text for one in described]]
    said = [chunk.of(text) for chunk in answer.chunks]
    passages, pictures = map(choose_matches, compare_chunks(said, groups, model, deadline))
    cited = chain[Reference | PictureReference](
        (answer.refer(one, chunks[one.source]) for one in passages),
        (answer.illustrate(one, described[one.source]) for one in pictures),
    )
    # A stable order: where one place has both, the passage comes before the picture.
    ordered = sorted(cited, key=lambda one: one.answer_chunk_position.end)
    marked, citations = insert_markers(text, ordered, style)
    return ReferencedText(marked, citations, _describe_left_out(len(shown) - len(described)))


def _describe_left_out(pictures: int) -> tuple[str, ...]:
    if not pictures:
        return ()
    which = (
        "1 picture of the sources has"
        if pictures == 1
        else f"{pictures} pictures of the sources have"
    )
    return (f"{which} no text to compare with, and no reference.",)
