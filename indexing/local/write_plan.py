"""What a batch of changes means for the documents that the index holds."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from connectors.access import NOBODY, Access
from connectors.document import Span
from indexing.chunking.chunk import Chunk
from indexing.index import person_keys
from indexing.index.protocols import Amend, Delete, Written
from indexing.index.validation import Batch, PreparedReplace, is_stale
from indexing.local import sql
from indexing.local.access_filter import LabelKind
from indexing.local.database import (
    Connection,
    pack_labels,
    read_state,
    to_details,
    to_json_list,
    unpack_labels,
)
from indexing.local.vector_file import Halves

_SHARED_LABELS: Mapping[str, LabelKind] = {
    "sets": "set",
    "projects": "project",
    "personas": "persona",
    "tags": "tag",
    "languages": "language",
}
"""Kinds of labels, by the name of their values in the details of a document."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as the index holds it before the batch."""

    ordinal: int
    generation: int
    first_row: int
    count: int
    hidden: int
    details: str
    readers: bytes
    """Packed labels of readers."""


@dataclass(frozen=True, slots=True)
class WritePlan:
    replaced: list[tuple[PreparedReplace, StoredDocument | None]]
    deleted: list[StoredDocument]
    amended: list[tuple[Amend, StoredDocument]]
    written: Written

    @property
    def outdated(self) -> list[StoredDocument]:
        return [stored for _, stored in self.replaced if stored] + self.deleted


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A new version of a document, with the places of its rows and vectors."""

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
    """All labels, for the full-text index."""
    halves: Halves

    @property
    def count(self) -> int:
        return len(self.prepared.change.chunks)

    @property
    def representative(self) -> Chunk:
        return _representative(self.prepared)


@dataclass(frozen=True, slots=True)
class Amendment:
    change: Amend
    stored: StoredDocument
    reader_set: int | None
    label_set: int
    details: str
    added: tuple[int, ...]
    """Labels that the document gets and did not have."""

    @property
    def changes_labels(self) -> bool:
        """Whether the full-text index is affected, which knows everything but the boost."""
        change = self.change
        changed = (change.access, change.sets, change.projects, change.personas, change.hidden)
        return any(value is not None for value in changed)


def plan_batch(connection: Connection, batch: Batch) -> WritePlan:
    """Sort the changes of a batch, which names every document at most once."""
    stored = _read_stored(connection, [item.document_id for item in batch])
    plan = WritePlan([], [], [], Written())
    stale, missing = [], []
    for item in batch:
        known = stored.get(item.document_id)
        if known is not None and is_stale(item, known.generation):
            stale.append(item.document_id)
        elif isinstance(item, PreparedReplace):
            plan.replaced.append((item, known))
        elif known is None:
            missing.append(item.document_id)
        elif isinstance(item, Delete):
            plan.deleted.append(known)
        else:
            plan.amended.append((item, known))
    written = _summarize(plan, stale, missing)
    return WritePlan(plan.replaced, plan.deleted, plan.amended, written)


def _read_stored(connection: Connection, ids: Sequence[str]) -> dict[str, StoredDocument]:
    found = connection.execute(sql.STORED_DOCUMENTS, (to_json_list(ids),))
    return {row[0]: StoredDocument(*row[1:]) for row in found}


def _summarize(plan: WritePlan, stale: Sequence[str], missing: Sequence[str]) -> Written:
    return Written(
        replaced=len(plan.replaced),
        chunks=sum(len(item.words) for item, _ in plan.replaced),
        deleted=len(plan.deleted),
        amended=len(plan.amended),
        stale=tuple(stale),
        missing=tuple(missing),
    )


class LabelWriter:
    """Gives each value and each set of values its number; used within one transaction of a writer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers: dict[tuple[str, *tuple[str | bytes, ...]], int] = {}
        self._reader_sets: dict[Access, int] = {}

    def label(self, kind: LabelKind, value: str) -> int:
        return self._get_or_add(sql.ADD_LABEL, sql.LABEL, kind, value)

    def labels(self, kind: LabelKind, values: Iterable[str]) -> list[int]:
        return [self.label(kind, value) for value in values]

    def shared_labels(self, details: Mapping[str, Iterable[str]]) -> list[int]:
        """Return the labels that many documents share, whatever their readers.

        A document that was indexed before there were languages, projects or personas has none of them.
        """
        return [
            label
            for name, kind in _SHARED_LABELS.items()
            for label in self.labels(kind, details.get(name, ()))
        ]

    def label_set(self, labels: Iterable[int]) -> int:
        return self._get_or_add(sql.ADD_LABEL_SET, sql.LABEL_SET, pack_labels(labels))

    def people_set(self, people: Mapping[int, int]) -> int:
        """Number a set of people, given as labels of their keys and of their names."""
        names = np.array([people[person] for person in sorted(people)], "<i4").tobytes()
        return self._get_or_add(sql.ADD_PEOPLE_SET, sql.PEOPLE_SET, pack_labels(people), names)

    def reader_set(self, access: Access) -> int:
        number = self._reader_sets.get(access)
        if number is None:
            number = self._reader_sets[access] = self._add_reader_set(access)
        return number

    def _add_reader_set(self, access: Access) -> int:
        tokens, encoded = sorted(access.readers), json.dumps(access.to_json())
        labels = pack_labels(self.labels("reader", tokens))
        self._connection.execute(sql.ADD_READER_SET, (encoded, labels))
        number = self._read_number(sql.READER_SET, encoded)
        self._connection.executemany(
            sql.ADD_READER_SET_TOKEN, [(number, token) for token in tokens]
        )
        return number

    def _get_or_add(self, add: str, read: str, *values: str | bytes) -> int:
        number = self._numbers.get((add, *values))
        if number is None:
            self._connection.execute(add, values)
            number = self._numbers[add, *values] = self._read_number(read, *values)
        return number

    def _read_number(self, statement: str, *values: str | bytes) -> int:
        number: int = self._connection.execute(statement, values).fetchone()[0]
        return number


def place_versions(
    connection: Connection, plan: WritePlan, labels: LabelWriter
) -> list[NewVersion]:
    """Give every new version its ordinal, rows and slots, and reserve the rows."""
    state = read_state(connection)
    ordinals = _free_ordinals(connection, len(plan.replaced))
    versions = []
    row, slot = state.next_row, state.slots
    for item, stored in plan.replaced:
        ordinal = stored.ordinal if stored else next(ordinals)
        versions.append(_new_version(item, ordinal, row, slot, labels))
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


def _new_version(
    item: PreparedReplace, ordinal: int, row: int, slot: int, labels: LabelWriter
) -> NewVersion:
    chunk = _representative(item)
    source = labels.label("source", chunk.source)
    media_type = labels.label("media_type", chunk.media_type)
    shared = labels.shared_labels(json.loads(to_details(chunk, item.languages)))
    owners = {
        labels.label("person", key): labels.label("name", name)
        for key, name in person_keys.names_by_key(chunk.owners).items()
    }
    # A hidden document has no readers in the full-text index, so no search of anybody finds it.
    readers = [] if chunk.hidden else labels.labels("reader", chunk.access.readers)
    return NewVersion(
        prepared=item,
        ordinal=ordinal,
        first_row=row,
        first_slot=slot,
        reader_set=labels.reader_set(chunk.access),
        label_set=labels.label_set(shared),
        source=source,
        media_type=media_type,
        people_set=labels.people_set(owners),
        labels=(source, media_type, *shared, *owners, *readers),
        halves=item.change.vectors.astype(np.float16),
    )


def _representative(item: PreparedReplace) -> Chunk:
    """Return a chunk with the fields of its document; a document without chunks has no readers."""
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


def resolve_amendment(change: Amend, stored: StoredDocument, labels: LabelWriter) -> Amendment:
    details = json.loads(stored.details)
    amended = details | {
        name: sorted(values) for name, values in _memberships(change) if values is not None
    }
    shared = labels.shared_labels(amended)
    readers, reader_set = unpack_labels(stored.readers), None
    if change.access is not None:
        readers = labels.labels("reader", change.access.readers)
        reader_set = labels.reader_set(change.access)
    hidden = stored.hidden if change.hidden is None else change.hidden
    before = labels.shared_labels(details)
    before += [] if stored.hidden else unpack_labels(stored.readers)
    after = shared if hidden else shared + readers
    return Amendment(
        change=change,
        stored=stored,
        reader_set=reader_set,
        label_set=labels.label_set(shared),
        details=json.dumps(amended),
        added=tuple(set(after) - set(before)),
    )


def _memberships(change: Amend) -> Iterator[tuple[str, frozenset[str] | None]]:
    yield "sets", change.sets
    yield "projects", change.projects
    yield "personas", change.personas
