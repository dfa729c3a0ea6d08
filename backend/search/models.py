"""What a search finds: chunks with the reasons for their rank, and sections of neighbouring chunks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from connectors.document import Span
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import Evidence

VariantName: TypeAlias = Literal["original", "semantic", "llm", "keyword"]
Leg: TypeAlias = Literal["vector", "keyword", "exact"]
CitationMapping: TypeAlias = Mapping[int, str]
"""Number to document id; a document keeps its number for the whole turn."""


@dataclass(frozen=True, slots=True)
class Why:
    """One reason for a rank: in this leg of this variant it stood here, counted from 1."""

    variant: VariantName
    query: str
    leg: Leg
    rank: int


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A chunk after fusion over all variants."""

    chunk: Chunk
    score: float
    """Sum over variants of weight / (k + rank)."""
    evidence: Evidence
    """The strongest of each figure over the variants that found it."""
    why: tuple[Why, ...]


@dataclass(frozen=True, slots=True)
class InferenceSection:
    """Consecutive chunks of one document, read as one text."""

    chunks: tuple[Chunk, ...]
    """By position, without gaps, at least one."""
    best: RankedChunk
    """Its best found chunk, at whose place the section ranks."""
    ranked: tuple[RankedChunk, ...]
    """All of its chunks that were found, best first; expansion adds chunks that were not."""

    @property
    def document_id(self) -> str:
        return self.best.chunk.document_id

    @property
    def start(self) -> int:
        return self.chunks[0].position

    @property
    def end(self) -> int:
        """One past the position of the last chunk."""
        return self.chunks[-1].position + 1

    @property
    def text(self) -> str:
        return "\n".join(chunk.text for chunk in self.chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchDoc:
    """A found section, as people and programs are shown it."""

    number: int
    """The document's citation number."""
    document_id: str
    title: str
    source: str
    link: str
    media_type: str
    heading_path: tuple[str, ...]
    section: int
    """The section of the document that holds the best chunk."""
    span: Span
    """Of the best chunk in the text of that section."""
    updated_at: datetime | None
    content: str
    score: float
    why: tuple[Why, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    sections: tuple[InferenceSection, ...]
    docs: tuple[SearchDoc, ...]
    """One for each section, in the same order."""
    for_model: str
    """JSON: `{"results": [{"document", "title", "source", ...}], "note"}`, within the answer budget."""
    citations: CitationMapping
    partial: bool
    """Some part of the index did not answer."""
