"""One batch of changes into the index: staged, flipped, not yet settled."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from connectors.document import NOBODY, Span
from indexing.chunk import Chunk
from indexing.embedded import rows, sql, vectors
from indexing.embedded.batches import Batch, Prepared
from indexing.embedded.database import Connection, State, read_state, transaction, write_state
from indexing.embedded.fulltext import Entry, Fulltext
from indexing.embedded.labels import Interned
from indexing.index import Amend, Delete, Written


@dataclass(frozen=True, slots=True)
class Held:
    """A document as the index has it before the batch."""

    ordinal: int
    generation: int
    first_row: int
    count: int
    details: str


@dataclass(frozen=True, slots=True)
class Staged:
    """A document's new version: its rows are stored, and seen by nobody."""

    prepared: Prepared
    ordinal: int
    first_row: int
    first_slot: int
    reader_set: int
    label_set: int
    source: int
    media_type: int
    labels: tuple[int, ...]
    """All of them, as the full-text index takes them."""

    @property
    def count(self) -> int:
        return len(self.prepared.change.chunks)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What of a batch is to be done."""

    replaced: list[Prepared]
    deleted: list[Held]
    amended: list[tuple[Amend, Held]]
    written: Written


def write_batch(folder: Path, connection: Connection, batch: Batch) -> Written:
    """Only for who holds the writer's lock, and after `settle`."""
    held = _held(connection, [item.document_id for item in batch])
    plan = _planned(batch, held)
    staged = _staged(connection, plan.replaced, held) if plan.replaced else []
    if any(document.count for document in staged):
        _taken_in(folder, read_state(connection), staged)
    with transaction(connection):
        _flip(connection, plan, staged, held)
    return plan.written


def _held(connection: Connection, ids: Sequence[str]) -> dict[str, Held]:
    return {row[0]: Held(*row[1:]) for row in connection.execute(sql.HELD, (json.dumps(ids),))}


def _planned(batch: Batch, held: dict[str, Held]) -> _Plan:
    replaced: list[Prepared] = []
    deleted: list[Held] = []
    amended: list[tuple[Amend, Held]] = []
    stale, missing = [], []
    for item in batch:
        known = held.get(item.document_id)
        if isinstance(item, Prepared):
            if known is not None and known.generation > item.change.generation:
                stale.append(item.document_id)
            else:
                replaced.append(item)
        elif known is None:
            missing.append(item.document_id)
        elif isinstance(item, Delete):
            deleted.append(known)
        else:
            amended.append((item, known))
    written = Written(
        replaced=len(replaced),
        chunks=sum(len(item.words) for item in replaced),
        deleted=len(deleted),
        amended=len(amended),
        stale=tuple(stale),
        missing=tuple(missing),
    )
    return _Plan(replaced, deleted, amended, written)


def _staged(
    connection: Connection, replaced: Sequence[Prepared], held: dict[str, Held]
) -> list[Staged]:
    with transaction(connection):
        state = read_state(connection)
        ordinals = _free_ordinals(connection, len(replaced))
        interned = Interned(connection)
        staged = []
        row, slot = state.next_row, state.slots
        for item in replaced:
            known = held.get(item.document_id)
            ordinal = known.ordinal if known else next(ordinals)
            staged.append(_placed(item, ordinal, row, slot, interned))
            row += len(item.words)
            slot += len(item.words)
        _store(connection, staged)
        connection.execute(sql.USE_ROWS, (row,))
    return staged


def _free_ordinals(connection: Connection, count: int) -> Iterator[int]:
    for (ordinal,) in connection.execute(sql.FREE_ORDINALS, (count,)).fetchall():
        yield ordinal
    (last,) = connection.execute(sql.LAST_ORDINAL).fetchone()
    while True:
        last += 1
        yield last


def _placed(item: Prepared, ordinal: int, row: int, slot: int, interned: Interned) -> Staged:
    said = _said(item)
    source = interned.label("source", said.source)
    media_type = interned.label("media_type", said.media_type)
    labels = interned.labels("set", said.sets) + interned.labels("tag", said.tags)
    shown_to = [] if said.hidden else interned.labels("reader", said.access.readers)
    return Staged(
        prepared=item,
        ordinal=ordinal,
        first_row=row,
        first_slot=slot,
        reader_set=interned.reader_set(said.access.readers),
        label_set=interned.label_set(labels),
        source=source,
        media_type=media_type,
        labels=(source, media_type, *labels, *shown_to),
    )


def _said(item: Prepared) -> Chunk:
    """A chunk that speaks for its document; an empty document says nothing and is nobody's."""
    if item.change.chunks:
        return item.change.chunks[0]
    return Chunk(
        document_id=item.document_id,
        position=0,
        text="",
        embedded_text="",
        section=0,
        span=Span(0, 0),
        title="",
        link="",
        source="",
        media_type="",
        access=NOBODY,
    )


def _store(connection: Connection, staged: Sequence[Staged]) -> None:
    for document in staged:
        numbered = list(enumerate(document.prepared.change.chunks, start=document.first_row))
        connection.executemany(
            sql.ADD_CHUNK, (rows.chunk_row(row, document.ordinal, chunk) for row, chunk in numbered)
        )
        connection.executemany(
            sql.ADD_WORDS, enumerate(document.prepared.words, start=document.first_row)
        )
        connection.executemany(
            sql.ADD_VECTOR,
            enumerate(map(np.ndarray.tobytes, document.prepared.vectors), start=document.first_row),
        )
        if document.count:
            connection.execute(sql.ADD_OUTBOX, (document.first_row, document.count))


def _taken_in(folder: Path, state: State, staged: Sequence[Staged]) -> None:
    """Into the full-text index and the vector files; both are on disk when this returns."""
    Fulltext(folder, state.fulltext_epoch).write([], _entries(staged))
    matrix = np.concatenate([document.prepared.vectors for document in staged])
    vectors.append(folder, state.vector_epoch, state.slots, matrix)


def _entries(staged: Sequence[Staged]) -> Iterator[Entry]:
    for document in staged:
        said = _said(document.prepared)
        for place in range(document.count):
            yield Entry(
                row=document.first_row + place,
                document=document.ordinal,
                version=document.first_row,
                words=document.prepared.words[place],
                plain=document.prepared.plain[place],
                labels=document.labels,
                created=rows.to_microseconds(said.created_at),
                updated=rows.to_microseconds(said.updated_at),
            )


def _flip(
    connection: Connection, plan: _Plan, staged: Sequence[Staged], held: dict[str, Held]
) -> None:
    state = read_state(connection)
    outdated = [held[item.document_id] for item in plan.replaced if item.document_id in held]
    outdated += plan.deleted
    added = sum(document.count for document in staged)
    state = write_state(
        connection,
        replace(
            state,
            slots=state.slots + added,
            chunks=state.chunks + added - sum(document.count for document in outdated),
        ),
    )
    connection.executemany(sql.PUT_DOCUMENT, (_document_row(d, state.counter) for d in staged))
    connection.executemany(sql.USE_ORDINAL, ((document.ordinal,) for document in staged))
    connection.executemany(sql.CLEAR_OUTBOX, ((document.first_row,) for document in staged))
    connection.executemany(
        sql.ADD_OUTBOX, ((old.first_row, old.count) for old in outdated if old.count)
    )
    connection.executemany(sql.DELETE_DOCUMENT, ((old.ordinal,) for old in plan.deleted))
    connection.executemany(
        sql.ADD_TOMBSTONE, ((old.ordinal, state.counter) for old in plan.deleted)
    )
    _amend(connection, plan.amended, state.counter)


def _document_row(document: Staged, counter: int) -> rows.Row:
    change, said = document.prepared.change, _said(document.prepared)
    return (
        document.ordinal,
        change.document_id,
        change.generation,
        change.content_hash,
        document.first_row,
        document.count,
        document.first_slot,
        document.reader_set,
        document.label_set,
        document.source,
        document.media_type,
        said.boost,
        said.hidden,
        rows.to_microseconds(said.created_at),
        rows.to_microseconds(said.updated_at),
        counter,
        rows.details(said),
    )


def _amend(connection: Connection, amended: Sequence[tuple[Amend, Held]], counter: int) -> None:
    interned = Interned(connection)
    for change, known in amended:
        said = json.loads(known.details) | (
            {} if change.sets is None else {"sets": sorted(change.sets)}
        )
        labels = interned.labels("set", said["sets"]) + interned.labels("tag", said["tags"])
        connection.execute(
            sql.AMEND_DOCUMENT,
            {
                "ordinal": known.ordinal,
                "reader_set": change.access and interned.reader_set(change.access.readers),
                "label_set": interned.label_set(labels),
                "boost": change.boost,
                "hidden": change.hidden,
                "details": json.dumps(said),
                "changed": counter,
            },
        )
        # The boost is read from the columns alone; all else is a condition of the full-text index.
        if known.count and (change.access, change.sets, change.hidden) != (None, None, None):
            connection.execute(sql.ADD_OUTBOX, (known.first_row, known.count))
