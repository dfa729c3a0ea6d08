"""New versions and amendments, stored where they are found but not yet seen.

When everything is staged, all parts of the index hold what readers may see before the flip and after it:
the full-text index knows a document that is being amended by its old labels and its new ones.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from connectors.access import NOBODY
from connectors.document import Span
from indexing.chunking.chunk import Chunk
from indexing.index import person_keys
from indexing.index.protocols import Amend
from indexing.index.validation import PreparedReplace
from indexing.local import row_mapping, sql, vector_file
from indexing.local.database import Connection, read_state, transaction
from indexing.local.label_ids import Interned, unpacked
from indexing.local.simd import Halves
from indexing.local.tantivy_documents import entries_of
from indexing.local.tantivy_index import Entry, Fulltext
from indexing.local.write_plan import Held, Plan


@dataclass(frozen=True, slots=True)
class Version:
    """A document's new version: its rows are stored, and seen by nobody."""

    prepared: PreparedReplace
    ordinal: int
    first_row: int
    first_slot: int
    reader_set: int
    label_set: int
    source: int
    media_type: int
    people_set: int
    labels: tuple[int, ...]
    """All of them, as the full-text index takes them."""
    halves: Halves

    @property
    def count(self) -> int:
        return len(self.prepared.change.chunks)

    @property
    def said(self) -> Chunk:
        """A chunk that speaks for its document; an empty document says nothing and is nobody's."""
        return _said(self.prepared)


@dataclass(frozen=True, slots=True)
class Amendment:
    change: Amend
    held: Held
    reader_set: int | None
    label_set: int
    details: str
    added: tuple[int, ...]
    """Labels by which the document is to be found and was not."""

    @property
    def changes_labels(self) -> bool:
        """The boost is read from the columns alone; all else is a condition of the full-text index."""
        change = self.change
        return (change.access, change.sets, change.hidden) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Staged:
    versions: list[Version]
    amendments: list[Amendment]


def store(connection: Connection, plan: Plan) -> Staged:
    """Into the tables, seen by nobody, and noted in the outbox should it come to nothing."""
    with transaction(connection):
        interned = Interned(connection)
        versions = _versions(connection, plan, interned)
        amendments = [_amendment(change, held, interned) for change, held in plan.amended]
        _add_rows(connection, versions)
        found_anew = [(version.first_row, version.count) for version in versions]
        found_anew += [(a.held.first_row, a.held.count) for a in amendments if a.added]
        connection.executemany(sql.ADD_OUTBOX, (noted for noted in found_anew if noted[1]))
    return Staged(versions, amendments)


def take_in(folder: Path, connection: Connection, staged: Staged) -> None:
    """Into the full-text index and the vector files, where all is on disk when this returns."""
    state = read_state(connection)
    versions = [version for version in staged.versions if version.count]
    widened = [amendment for amendment in staged.amendments if amendment.added]
    if versions or widened:
        entries = chain(_entries(versions), _widened(connection, widened))
        outdated = [amendment.held.first_row for amendment in widened]
        Fulltext(folder, state.fulltext_epoch).write(outdated, entries)
    if versions:
        matrix = np.concatenate([version.halves for version in versions])
        vector_file.append(folder, state.vector_epoch, state.slots, matrix)


def _versions(connection: Connection, plan: Plan, interned: Interned) -> list[Version]:
    state = read_state(connection)
    ordinals = _free_ordinals(connection, len(plan.replaced))
    versions = []
    row, slot = state.next_row, state.slots
    for item, held in plan.replaced:
        ordinal = held.ordinal if held else next(ordinals)
        versions.append(_version(item, ordinal, row, slot, interned))
        row += len(item.words)
        slot += len(item.words)
    connection.execute(sql.USE_ROWS, (row,))
    return versions


def _free_ordinals(connection: Connection, count: int) -> Iterator[int]:
    for (ordinal,) in connection.execute(sql.FREE_ORDINALS, (count,)).fetchall():
        yield ordinal
    (last,) = connection.execute(sql.LAST_ORDINAL).fetchone()
    while True:
        last += 1
        yield last


def _version(
    item: PreparedReplace, ordinal: int, row: int, slot: int, interned: Interned
) -> Version:
    said = _said(item)
    source = interned.label("source", said.source)
    media_type = interned.label("media_type", said.media_type)
    labels = interned.labels("set", said.sets) + interned.labels("tag", said.tags)
    owners = {
        interned.label("person", key): interned.label("name", name)
        for key, name in person_keys.names_by_key(said.owners).items()
    }
    shown_to = [] if said.hidden else interned.labels("reader", said.access.readers)
    return Version(
        prepared=item,
        ordinal=ordinal,
        first_row=row,
        first_slot=slot,
        reader_set=interned.reader_set(said.access.readers),
        label_set=interned.label_set(labels),
        source=source,
        media_type=media_type,
        people_set=interned.people_set(owners),
        labels=(source, media_type, *labels, *owners, *shown_to),
        halves=item.change.vectors.astype(np.float16),
    )


def _said(item: PreparedReplace) -> Chunk:
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


def _amendment(change: Amend, held: Held, interned: Interned) -> Amendment:
    said = json.loads(held.details)
    sets = said["sets"] if change.sets is None else sorted(change.sets)
    labels = interned.labels("set", sets) + interned.labels("tag", said["tags"])
    readers, reader_set = unpacked(held.readers), None
    if change.access is not None:
        readers = interned.labels("reader", change.access.readers)
        reader_set = interned.reader_set(change.access.readers)
    hidden = held.hidden if change.hidden is None else change.hidden
    before = interned.labels("set", said["sets"]) + interned.labels("tag", said["tags"])
    before += [] if held.hidden else unpacked(held.readers)
    after = labels if hidden else labels + readers
    return Amendment(
        change=change,
        held=held,
        reader_set=reader_set,
        label_set=interned.label_set(labels),
        details=json.dumps(said | {"sets": sets}),
        added=tuple(set(after) - set(before)),
    )


def _add_rows(connection: Connection, versions: Sequence[Version]) -> None:
    numbered = [(version, enumerate(version.prepared.change.chunks)) for version in versions]
    connection.executemany(
        sql.ADD_CHUNK,
        (
            row_mapping.chunk_row(version.first_row + place, version.ordinal, chunk)
            for version, chunks in numbered
            for place, chunk in chunks
        ),
    )
    words = (enumerate(version.prepared.words, version.first_row) for version in versions)
    connection.executemany(sql.ADD_WORDS, chain.from_iterable(words))
    blobs = (
        enumerate(map(np.ndarray.tobytes, version.halves), version.first_row)
        for version in versions
    )
    connection.executemany(sql.ADD_VECTOR, chain.from_iterable(blobs))


def _entries(versions: Sequence[Version]) -> Iterator[Entry]:
    for version in versions:
        for place in range(version.count):
            yield Entry(
                row=version.first_row + place,
                document=version.ordinal,
                version=version.first_row,
                words=version.prepared.words[place],
                plain=version.prepared.plain[place],
                labels=version.labels,
                created=row_mapping.to_microseconds(version.said.created_at),
                updated=row_mapping.to_microseconds(version.said.updated_at),
            )


def _widened(connection: Connection, amendments: Sequence[Amendment]) -> Iterator[Entry]:
    for amendment in amendments:
        for entry in entries_of(connection, amendment.held.first_row):
            yield replace(entry, labels=[*entry.labels, *amendment.added])
