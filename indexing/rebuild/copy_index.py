"""One index copied to another as it is: chunks and vectors, nothing cut or embedded.

What is to be copied is the difference of the two surveys, so that a copy that was stopped goes on where it
was. At the end the two are compared: what they hold, and what they answer.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from connectors.document import Readers
from connectors.errors import ActionRequiredError
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
from indexing.ingestion.reconciliation import Difference, differences
from indexing.rebuild.standstill import GoOn, Standstill, Waiting, entered
from indexing.runtime.deadline import Deadline

SAMPLE = 50
"""Documents that both indexes are asked for at the end."""
SIZE = 10
AGREEMENT = 0.9
"""Least share of the best ten that both name, on average, for words and for vectors alike."""
_SAME_SCORE = 1.0 + 1e-6
_MOST_CHUNKS = 2_000
_LONGEST_TEXT = 200
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Place:
    """One of the two indexes: as it is kept, and as it is asked once it holds everything."""

    writer: IndexWriter
    index: Callable[[], Index]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """How far the copy is."""

    documents: int
    """Copied in this run, of `total` that the target had not, or not as they are."""
    total: int
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Two indexes that hold the same, asked the same."""

    documents: int
    chunks: int
    asked: int
    """Documents of the sample, spread evenly: for each, the words and the vector of one of its chunks."""
    words: float
    """Share of the best ten that both name, on average over the sample; 1 where there was none."""
    vectors: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    documents: int
    """Copied in this run."""
    deleted: int
    """From the target, which the source has no more."""
    agreement: Agreement


Moving: TypeAlias = Copying | Waiting | Moved


def move(
    source: Place, target: Place, standstill: Standstill, switch: Callable[[], None]
) -> Iterator[Moving]:
    """Copy, compare, then `switch`, all while no source is synced; the last thing told is `Moved`.

    Whatever ends it, it can be run again, and goes on from what was written.

    Raises:
        ActionRequiredError: the two do not agree; nothing was switched.
        TemporarilyUnavailableError, ActionRequiredError: either index's.
    """
    with ExitStack() as stack:
        go_on = yield from entered(stack, standstill)
        wanted = _wanted(source.writer, target.writer)
        yield from _copied(source.writer, target.writer, wanted, go_on)
        agreement = compared(source, target, go_on)
        _check(agreement)
        switch()
        yield Moved(documents=wanted.documents, deleted=len(wanted.gone), agreement=agreement)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Documents that follow each other in the source and are all to be copied."""

    after: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What the target lacks. Flat in memory where it lacks everything, or little."""

    stretches: tuple[_Stretch, ...]
    documents: int
    outdated: tuple[str, ...]
    """To be deleted before anything is copied."""
    gone: frozenset[str]
    """Those of them that the source has no more."""


def _wanted(source: IndexWriter, target: IndexWriter) -> _Wanted:
    found = [each for each in _differences(source, target) if _is_outdated(each)]
    stretches = tuple(_stretches(source.scan(), _differences(source, target)))
    return _Wanted(
        stretches=stretches,
        documents=sum(1 for each in _differences(source, target) if each.told),
        outdated=tuple(each.id for each in found),
        gone=frozenset(each.id for each in found if each.told is None),
    )


def _differences(source: IndexWriter, target: IndexWriter) -> Iterator[Difference]:
    return differences(source.scan(), target.scan())


def _is_outdated(difference: Difference) -> bool:
    """The source has it no more, or holds a version that the target takes for an older one."""
    told, held = difference.told, difference.held
    return held is not None and (told is None or held.generation > told.generation)


def _stretches(scan: Iterator[IndexedDocument], found: Iterator[Difference]) -> Iterator[_Stretch]:
    wanted = (each.id for each in found if each.told)
    coming, before, after = next(wanted, None), "", None
    for document in scan:
        if document.id == coming:
            after = before if after is None else after
            coming = next(wanted, None)
        elif after is not None:
            yield _Stretch(after, before)
            after = None
        before = document.id
    if after is not None:
        yield _Stretch(after, before)


def _copied(
    source: IndexWriter, target: IndexWriter, wanted: _Wanted, go_on: GoOn
) -> Iterator[Copying]:
    documents = chunks = 0
    yield Copying(documents=0, total=wanted.documents, chunks=0)
    for batch in _batches(_changes(source, wanted)):
        go_on()
        target.write(batch)
        copied = [change for change in batch if isinstance(change, Replace)]
        documents += len(copied)
        chunks += sum(len(change.chunks) for change in copied)
        yield Copying(documents=documents, total=wanted.documents, chunks=chunks)


def _changes(source: IndexWriter, wanted: _Wanted) -> Iterator[IndexChange]:
    yield from map(Delete, wanted.outdated)
    for stretch in wanted.stretches:
        for each in source.export(stretch.after):
            yield each
            if each.document_id >= stretch.last:
                break


def _batches(changes: Iterator[IndexChange]) -> Iterator[list[IndexChange]]:
    batch: list[IndexChange] = []
    weight = 0
    for change in changes:
        batch.append(change)
        weight += 1 + (len(change.chunks) if isinstance(change, Replace) else 0)
        if weight >= _MOST_CHUNKS:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch


def compared(source: Place, target: Place, go_on: GoOn) -> Agreement:
    """Ask both the same.

    Raises:
        ActionRequiredError: they do not hold the same.
    """
    if (different := next(_differences(source.writer, target.writer), None)) is not None:
        raise ActionRequiredError(
            f"The copy does not hold what the index holds: {different.id} is not the same in both."
            " Move again; what is right already is not copied again."
        )
    documents = chunks = 0
    for each in source.writer.scan():
        documents += each.chunks > 0
        chunks += each.chunks
    asked, index, copy = 0, source.index(), target.index()
    overlaps = np.zeros((0, 2))
    for after, readers in _sample(source.writer, documents):
        go_on()
        chunk, vector = _chunk_of(next(source.writer.export(after)))
        if chunk.hidden:
            continue
        asked += 1
        both = [_answers(each, chunk, vector, readers) for each in (index, copy)]
        shares = [_overlap(one, other) for one, other in zip(*both, strict=True)]
        overlaps = np.vstack([overlaps, shares])
    words, vectors = overlaps.mean(axis=0).tolist() if asked else (1.0, 1.0)
    return Agreement(documents=documents, chunks=chunks, asked=asked, words=words, vectors=vectors)


def _sample(writer: IndexWriter, documents: int) -> Iterator[tuple[str, Readers]]:
    """The ids before those of the sample, and who may ask for them."""
    step = max(1, documents // SAMPLE)
    number, before = 0, ""
    for each in writer.scan():
        if each.chunks and each.access.readers:
            if number % step == 0:
                yield before, Readers.of(*each.access.readers)
            number += 1
        before = each.id


def _chunk_of(document: Replace) -> tuple[Chunk, Vector]:
    """One from its middle: what stands there, other documents have less in common with."""
    place = len(document.chunks) // 2
    return document.chunks[place], document.vectors[place]


def _answers(
    index: Index, chunk: Chunk, vector: Vector, readers: Readers
) -> tuple[Sequence[Hit], ...]:
    """By words alone, then by the vector alone; one more than is compared."""
    words = IndexQuery(text=chunk.text[:_LONGEST_TEXT], vector=None, alpha=0.0, size=SIZE + 1)
    meaning = IndexQuery(text="", vector=vector, alpha=1.0, size=SIZE + 1)
    return index.find([words, meaning], readers, Deadline.after(_SECONDS)).rankings


def _overlap(one: Sequence[Hit], other: Sequence[Hit]) -> float:
    """Share of the best of `one` that `other` names too; which of equals are named does not count."""
    best, named = one[:SIZE], {hit.chunk.key for hit in other[:SIZE]}
    equals = one[SIZE].score * _SAME_SCORE if len(one) > SIZE else -1.0
    agreed = sum(hit.chunk.key in named or hit.score <= equals for hit in best)
    return agreed / max(len(best), len(named), 1) if best or named else 1.0


def _check(agreement: Agreement) -> None:
    if min(agreement.words, agreement.vectors) < AGREEMENT:
        raise ActionRequiredError(
            f"The copy holds what the index holds, and answers otherwise: of the best {SIZE} for"
            f" {agreement.asked} documents both name {agreement.words:.0%} by words and"
            f" {agreement.vectors:.0%} by vectors, on average. Nothing was switched."
        )
