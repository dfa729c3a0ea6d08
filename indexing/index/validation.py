"""Validate, tokenize and batch the changes of an index before it is touched; shared by both engines."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from indexing.chunking.chunk import Chunk
from indexing.index.protocols import Amend, Delete, IndexChange, Replace
from indexing.text.analysis import Analysis, Languages
from indexing.text.normalization import is_storable

UNIT_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class PreparedReplace:
    """A valid Replace, with the words of its chunks."""

    change: Replace
    words: tuple[str, ...]
    """The words of each chunk by which it is found, joined by spaces."""
    plain: tuple[str, ...]
    """All words of each chunk in order, joined by spaces."""
    languages: Languages

    @property
    def document_id(self) -> str:
        return self.change.document_id


PreparedChange: TypeAlias = PreparedReplace | Delete | Amend
Batch: TypeAlias = list[PreparedChange]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The size of a batch; a document with more chunks is a batch of its own."""

    changes: int
    chunks: int


def prepare_batches(
    changes: Iterable[IndexChange], dimension: int, limits: BatchLimits, analysis: Analysis
) -> Iterator[Batch]:
    """Yield batches in the order of `changes`; each holds at most one change per document.

    Args:
        analysis: that of the index.

    Raises:
        ValueError: see `IndexWriter.write`.
    """
    batch: Batch = []
    named: set[str] = set()
    chunks = 0
    for change in changes:
        item = _prepare(change, dimension, analysis)
        size = len(item.words) if isinstance(item, PreparedReplace) else 0
        full = len(batch) == limits.changes or chunks + size > limits.chunks
        if batch and (full or item.document_id in named):
            yield batch
            batch, named, chunks = [], set(), 0
        batch.append(item)
        named.add(item.document_id)
        chunks += size
    if batch:
        yield batch


def is_stale(item: PreparedChange, generation: int) -> bool:
    """Return whether the change is older than the generation that the index holds of its document."""
    match item:
        case PreparedReplace(change=change):
            return generation > change.generation
        case Delete(up_to=up_to) | Amend(up_to=up_to):
            return up_to is not None and generation > up_to


def _prepare(change: IndexChange, dimension: int, analysis: Analysis) -> PreparedChange:
    match change:
        case Replace():
            _check_vectors(change, dimension)
            _check_chunks(change)
            texts = analysis.analyze([chunk.embedded_text for chunk in change.chunks])
            return PreparedReplace(change, texts.words, texts.plain, texts.languages)
        case Amend(boost=float() as boost):
            _check_boost(change.document_id, boost)
            return change
        case Delete() | Amend():
            return change


def _check_vectors(change: Replace, dimension: int) -> None:
    expected = (len(change.chunks), dimension)
    if change.vectors.shape != expected:
        raise ValueError(
            f"{change.document_id}: vectors of shape {change.vectors.shape} where {expected} is expected"
        )
    # `norm` would square a copy of all.
    lengths = np.sqrt(np.einsum("ij,ij->i", change.vectors, change.vectors))
    # The comparison is written so that NaN fails it too.
    if not np.all(np.abs(lengths - 1.0) <= UNIT_TOLERANCE):
        raise ValueError(f"{change.document_id}: a vector is not of length 1")


def _check_chunks(change: Replace) -> None:
    if not change.document_id or not is_storable(change.document_id):
        raise ValueError(f"an id must be Unicode, not empty, without NUL: {change.document_id!r}")
    for position, chunk in enumerate(change.chunks):
        if chunk.document_id != change.document_id:
            raise ValueError(f"{change.document_id}: contains a chunk of {chunk.document_id}")
        if chunk.position != position:
            raise ValueError(
                f"{change.document_id}: chunk number {position} has position {chunk.position}"
            )
    if change.chunks:
        _check_boost(change.document_id, change.chunks[0].boost)
        if len({_document_fields(chunk) for chunk in change.chunks}) > 1:
            raise ValueError(
                f"{change.document_id}: its chunks disagree on fields of the whole document"
                " (title, source, media type, access, tags, sets, projects, personas, owners, boost,"
                " hidden, dates)"
            )


def _document_fields(chunk: Chunk) -> tuple[object, ...]:
    return (
        chunk.title,
        chunk.source,
        chunk.media_type,
        chunk.access,
        chunk.tags,
        chunk.sets,
        chunk.projects,
        chunk.personas,
        chunk.owners,
        chunk.boost,
        chunk.hidden,
        chunk.created_at,
        chunk.updated_at,
    )


def _check_boost(document_id: str, boost: float) -> None:
    if not (math.isfinite(boost) and boost >= 0.0):
        raise ValueError(f"{document_id}: a boost must be finite and not negative: {boost}")
