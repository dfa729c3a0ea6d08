"""Changes of an index, checked, prepared and gathered before it is touched; the same for every index."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from indexing.chunking.chunk import Chunk
from indexing.index.protocols import Amend, Delete, IndexChange, Replace
from indexing.text import tokenizer

UNIT_TOLERANCE = 1e-3

_UNSTORABLE = re.compile("[\\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A Replace, with what an index makes of its texts."""

    change: Replace
    words: tuple[str, ...]
    """For each chunk its tokens with a space between them."""
    plain: tuple[str, ...]
    """For each chunk all its words in their order, with a space between them."""

    @property
    def document_id(self) -> str:
        return self.change.document_id


Item: TypeAlias = Prepared | Delete | Amend
Batch: TypeAlias = list[Item]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Of a batch; a document with more chunks than that is a batch of its own."""

    changes: int
    chunks: int


def batches(changes: Iterable[IndexChange], dimension: int, limits: BatchLimits) -> Iterator[Batch]:
    """Batches in the order of `changes`, in each of which a document stands at most once.

    Raises:
        ValueError: see `IndexWriter.write`.
    """
    batch: Batch = []
    named: set[str] = set()
    chunks = 0
    for change in changes:
        item = _item(change, dimension)
        size = len(item.words) if isinstance(item, Prepared) else 0
        full = len(batch) == limits.changes or chunks + size > limits.chunks
        if batch and (full or item.document_id in named):
            yield batch
            batch, named, chunks = [], set(), 0
        batch.append(item)
        named.add(item.document_id)
        chunks += size
    if batch:
        yield batch


def is_stale(item: Item, generation: int) -> bool:
    """Whether the item is older than the generation that an index holds of its document."""
    match item:
        case Prepared(change=change):
            return generation > change.generation
        case Delete(up_to=up_to) | Amend(up_to=up_to):
            return up_to is not None and generation > up_to


def is_storable(text: str) -> bool:
    """Whether `text` is Unicode without NUL. Half of a surrogate pair is not Unicode."""
    return _UNSTORABLE.search(text) is None


def _item(change: IndexChange, dimension: int) -> Item:
    match change:
        case Replace():
            return _prepared(change, dimension)
        case Amend(boost=float() as boost):
            _check_boost(change.document_id, boost)
            return change
        case Delete() | Amend():
            return change


def _prepared(change: Replace, dimension: int) -> Prepared:
    _check_vectors(change, dimension)
    _check_chunks(change)
    found = [tokenizer.both_words(chunk.embedded_text) for chunk in change.chunks]
    return Prepared(
        change,
        tuple(" ".join(words) for words, _ in found),
        tuple(" ".join(plain) for _, plain in found),
    )


def _check_vectors(change: Replace, dimension: int) -> None:
    expected = (len(change.chunks), dimension)
    if change.vectors.shape != expected:
        raise ValueError(
            f"{change.document_id}: vectors of shape {change.vectors.shape} where {expected} is due"
        )
    lengths = np.linalg.norm(change.vectors, axis=1)
    # Written so that a length that is not a number fails too.
    if not np.all(np.abs(lengths - 1.0) <= UNIT_TOLERANCE):
        raise ValueError(f"{change.document_id}: a vector is not of length 1")


def _check_chunks(change: Replace) -> None:
    if not change.document_id or not is_storable(change.document_id):
        raise ValueError(f"an id is Unicode, not empty, and holds no NUL: {change.document_id!r}")
    for position, chunk in enumerate(change.chunks):
        if chunk.document_id != change.document_id:
            raise ValueError(f"{change.document_id}: holds a chunk of {chunk.document_id}")
        if chunk.position != position:
            raise ValueError(
                f"{change.document_id}: chunk {chunk.position} stands at place {position}"
            )
    if change.chunks:
        _check_boost(change.document_id, change.chunks[0].boost)
        if len({_of_document(chunk) for chunk in change.chunks}) > 1:
            raise ValueError(
                f"{change.document_id}: its chunks disagree on what is said of the whole document"
                " (title, source, media type, access, tags, sets, owners, boost, hidden, dates)"
            )


def _of_document(chunk: Chunk) -> tuple[object, ...]:
    return (
        chunk.title,
        chunk.source,
        chunk.media_type,
        chunk.access,
        chunk.tags,
        chunk.sets,
        chunk.owners,
        chunk.boost,
        chunk.hidden,
        chunk.created_at,
        chunk.updated_at,
    )


def _check_boost(document_id: str, boost: float) -> None:
    if not (math.isfinite(boost) and boost >= 0.0):
        raise ValueError(f"{document_id}: a boost is zero or more, and finite: {boost}")
