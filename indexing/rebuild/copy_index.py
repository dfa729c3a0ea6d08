"""Copies one index to another as it is: chunks and vectors, without chunking or embedding again.

What is copied is the difference of the two inventories, so that an interrupted copy continues where it
stopped. At the end, contents and search results of the two indexes are compared.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from connectors.access import Readers
from connectors.errors import DamagedDataError
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import Vector
from indexing.index.protocols import (
    Delete,
    Hit,
    Index,
    IndexChange,
    IndexedDocument,
    IndexQuery,
    IndexWriter,
    Replace,
)
from indexing.ingestion.pipeline import Difference, find_differences
from indexing.rebuild.events import KeepAlive, SyncPause, WaitingForSync, enter_sync_pause
from indexing.runtime.deadline import Deadline

SAMPLE_SIZE = 50
"""Documents that both indexes are searched for at the end."""
COMPARED_HITS = 10
MIN_OVERLAP = 0.9
"""Average share of the best ten that both indexes must return, by words and by vectors."""
_SAME_SCORE = 1.0 + 1e-6
_MAX_BATCH_CHUNKS = 2_000
_MAX_QUERY_CHARACTERS = 200
_SEARCH_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class CopyEndpoint:
    """One of the two indexes: its writer, and how to open it for searching once it is complete."""

    writer: IndexWriter
    index: Callable[[], Index]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProgress:
    documents: int
    """Copied in this run, of `total` that were missing in the target or different."""
    total: int
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two indexes with the same contents, given the same queries."""

    documents: int
    chunks: int
    sampled: int
    """Documents of the sample, evenly spread; for each, the words and the vector of one chunk are searched."""
    words: float
    """Average share of the best ten that both return; 1 for an empty sample."""
    vectors: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyResult:
    documents: int
    """Copied in this run."""
    deleted: int
    """Deleted from the target because the source does not contain them any more."""
    comparison: Comparison


CopyEvent: TypeAlias = CopyProgress | WaitingForSync | CopyResult


def copy_index(
    source: CopyEndpoint, target: CopyEndpoint, pause: SyncPause, switch: Callable[[], None]
) -> Iterator[CopyEvent]:
    """Copy, compare, then `switch`, all while no source is synced. The last event is the result.

    Whatever ends it, it can be run again and continues from what was written.

    Raises:
        DamagedDataError: the two indexes differ; nothing was switched.
        TemporarilyUnavailableError, ActionRequiredError: of either index.
    """
    with ExitStack() as stack:
        keep_alive = yield from enter_sync_pause(stack, pause)
        plan = _plan_copy(source.writer, target.writer)
        yield from _copy_documents(source.writer, target.writer, plan, keep_alive)
        comparison = compare_indexes(source, target, keep_alive)
        _check_overlap(comparison)
        switch()
        yield CopyResult(documents=plan.documents, deleted=len(plan.removed), comparison=comparison)


@dataclass(frozen=True, slots=True)
class _Range:
    """Consecutive documents of the source that are all to be copied."""

    after: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _CopyPlan:
    """What the target lacks. Small where it lacks everything, or little."""

    ranges: tuple[_Range, ...]
    documents: int
    outdated: tuple[str, ...]
    """To be deleted from the target before anything is copied."""
    removed: frozenset[str]
    """Those outdated documents that the source does not contain any more."""


def copy_missing(source: IndexWriter, target: IndexWriter) -> Iterator[CopyProgress]:
    """Copy what the target lacks or has in another version, while both may be written to.

    The target analyses the texts itself, so that its words may be others than those of the source. What changes
    meanwhile may be missed.

    Raises as `copy_index`.
    """
    yield from _copy_documents(source, target, _plan_copy(source, target), _do_nothing)


def _do_nothing() -> None:
    """Do nothing: syncs are not paused, so that there is no pause to extend."""


def _plan_copy(source: IndexWriter, target: IndexWriter) -> _CopyPlan:
    outdated = [each for each in _find_differences(source, target) if _is_outdated(each)]
    ranges = tuple(_group_ranges(source.scan(), _find_differences(source, target)))
    return _CopyPlan(
        ranges=ranges,
        documents=sum(1 for each in _find_differences(source, target) if each.expected),
        outdated=tuple(each.id for each in outdated),
        removed=frozenset(each.id for each in outdated if each.expected is None),
    )


def _find_differences(source: IndexWriter, target: IndexWriter) -> Iterator[Difference]:
    return find_differences(source.scan(), target.scan())


def _is_outdated(difference: Difference) -> bool:
    """Return whether the source has no such document, or a version that the target would refuse as an older one."""
    expected, actual = difference.expected, difference.actual
    return actual is not None and (expected is None or actual.generation > expected.generation)


def _group_ranges(
    documents: Iterator[IndexedDocument], found: Iterator[Difference]
) -> Iterator[_Range]:
    wanted = (each.id for each in found if each.expected)
    next_wanted, before, after = next(wanted, None), "", None
    for document in documents:
        if document.id == next_wanted:
            after = before if after is None else after
            next_wanted = next(wanted, None)
        elif after is not None:
            yield _Range(after, before)
            after = None
        before = document.id
    if after is not None:
        yield _Range(after, before)


def _copy_documents(
    source: IndexWriter, target: IndexWriter, plan: _CopyPlan, keep_alive: KeepAlive
) -> Iterator[CopyProgress]:
    documents = chunks = 0
    yield CopyProgress(documents=0, total=plan.documents, chunks=0)
    for batch in _group_by_chunks(_read_changes(source, plan)):
        keep_alive()
        target.write(batch)
        copied = [change for change in batch if isinstance(change, Replace)]
        documents += len(copied)
        chunks += sum(len(change.chunks) for change in copied)
        yield CopyProgress(documents=documents, total=plan.documents, chunks=chunks)


def _read_changes(source: IndexWriter, plan: _CopyPlan) -> Iterator[IndexChange]:
    yield from map(Delete, plan.outdated)
    for each in plan.ranges:
        for document in source.export(each.after):
            yield document
            if document.document_id >= each.last:
                break


def _group_by_chunks(changes: Iterator[IndexChange]) -> Iterator[list[IndexChange]]:
    batch: list[IndexChange] = []
    weight = 0
    for change in changes:
        batch.append(change)
        weight += 1 + (len(change.chunks) if isinstance(change, Replace) else 0)
        if weight >= _MAX_BATCH_CHUNKS:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch


def compare_indexes(
    source: CopyEndpoint, target: CopyEndpoint, keep_alive: KeepAlive
) -> Comparison:
    """Compare the contents of both indexes, then what they return for the same queries.

    Raises:
        DamagedDataError: their contents differ.
    """
    if (different := next(_find_differences(source.writer, target.writer), None)) is not None:
        raise DamagedDataError(
            f"The copy differs from the index: document {different.id} is not the same in both. Run the"
            " move again; documents that are already right are not copied again."
        )
    documents = chunks = 0
    for each in source.writer.scan():
        documents += each.chunks > 0
        chunks += each.chunks
    sampled, index, copy = 0, source.index(), target.index()
    overlaps = np.zeros((0, 2))
    for after, readers in _sample_documents(source.writer, documents):
        keep_alive()
        chunk, vector = _middle_chunk(next(source.writer.export(after)))
        if chunk.hidden:
            continue
        sampled += 1
        both = [_search(each, chunk, vector, readers) for each in (index, copy)]
        shares = [_overlap(one, other) for one, other in zip(*both, strict=True)]
        overlaps = np.vstack([overlaps, shares])
    words, vectors = overlaps.mean(axis=0).tolist() if sampled else (1.0, 1.0)
    return Comparison(
        documents=documents, chunks=chunks, sampled=sampled, words=words, vectors=vectors
    )


def _sample_documents(writer: IndexWriter, documents: int) -> Iterator[tuple[str, Readers]]:
    """Yield the id before each sampled document, and its readers."""
    step = max(1, documents // SAMPLE_SIZE)
    number, before = 0, ""
    for each in writer.scan():
        if each.chunks and each.access.readers:
            if number % step == 0:
                yield before, Readers(each.access.readers)
            number += 1
        before = each.id


def _middle_chunk(document: Replace) -> tuple[Chunk, Vector]:
    """Return the chunk in the middle: it has less in common with other documents than the first."""
    position = len(document.chunks) // 2
    return document.chunks[position], document.vectors[position]


def _search(
    index: Index, chunk: Chunk, vector: Vector, readers: Readers
) -> tuple[Sequence[Hit], ...]:
    """Search by words alone, then by the vector alone, for one hit more than is compared."""
    size = COMPARED_HITS + 1
    words = IndexQuery(text=chunk.text[:_MAX_QUERY_CHARACTERS], vector=None, alpha=0.0, size=size)
    meaning = IndexQuery(text="", vector=vector, alpha=1.0, size=size)
    return index.find([words, meaning], readers, Deadline.after(_SEARCH_SECONDS)).rankings


def _overlap(one: Sequence[Hit], other: Sequence[Hit]) -> float:
    """Return the share of the best hits of `one` that `other` has too; ties at the end do not count."""
    best, found = one[:COMPARED_HITS], {hit.chunk.key for hit in other[:COMPARED_HITS]}
    tied = one[COMPARED_HITS].score * _SAME_SCORE if len(one) > COMPARED_HITS else -1.0
    agreed = sum(hit.chunk.key in found or hit.score <= tied for hit in best)
    return agreed / max(len(best), len(found), 1) if best or found else 1.0


def _check_overlap(comparison: Comparison) -> None:
    if min(comparison.words, comparison.vectors) < MIN_OVERLAP:
        raise DamagedDataError(
            f"The copy contains the same documents but returns other results: of the best {COMPARED_HITS} for"
            f" {comparison.sampled} documents, both return {comparison.words:.0%} by words and"
            f" {comparison.vectors:.0%} by vectors on average. Nothing was switched."
        )
