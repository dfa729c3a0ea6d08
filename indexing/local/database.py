"""The SQLite file that holds the local index: connections, the lock of its writers, and its rows as chunks."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, TypeAlias

import numpy as np

from connectors.access import Access, parse_access
from connectors.document import Person, Span
from connectors.errors import DamagedDataError, NotConfiguredError, TemporarilyUnavailableError
from indexing.chunking.chunk import Chunk
from indexing.local import sql
from indexing.text.analysis import Languages
from indexing.text.normalization import is_storable

BUSY_SECONDS = 30.0
LOCK_TIMEOUT = 120.0
"""Seconds to wait for another writer: longer than any one batch and than most rebuilds take."""
MAPPED_BYTES = 1 << 30
"""Bytes of the file that readers map into memory, which makes fetching chunks a quarter faster."""

Connection: TypeAlias = sqlite3.Connection

Row: TypeAlias = tuple[Any, ...]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class State:
    """What the tables, the full-text index and the vector files agree on; the table `state`."""

    counter: int
    next_row: int
    slots: int
    chunks: int
    vector_epoch: int
    fulltext_epoch: int


def database_file(folder: Path) -> Path:
    return folder / "index.db"


def connect(folder: Path) -> Connection:
    """Open a connection that any one thread at a time may use."""
    connection = sqlite3.connect(
        database_file(folder), timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def connect_writer(folder: Path) -> Connection:
    """Open a connection whose commits also survive a power cut.

    The full-text index is always on disk when its commit returns. If a later transaction of SQLite could be
    lost, row numbers would be used twice.
    """
    connection = connect(folder)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


@contextmanager
def writer_lock(folder: Path, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Hold the lock of the only writer of `folder`, over all threads and processes.

    The lock is that of an empty SQLite file: the operating system releases it when a process dies, on
    every system that SQLite runs on, and waiting is built in.

    Raises:
        TemporarilyUnavailableError: another writer did not finish within `timeout` seconds.
    """
    with closing(
        sqlite3.connect(folder / "writer.lock", timeout=timeout, isolation_level=None)
    ) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            raise TemporarilyUnavailableError(
                f"Another process has been writing to the index in {folder} for {timeout:.0f} seconds."
                " Wait for it to end, or stop it, and try again.",
                timedelta(seconds=timeout),
            ) from error
        yield


class ConnectionPool:
    """Connections of readers; each is used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._idle: LifoQueue[Connection] = LifoQueue()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        try:
            connection = self._idle.get_nowait()
        except Empty:
            connection = connect(self._folder)
            connection.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
        try:
            yield connection
        finally:
            self._idle.put(connection)

    def close(self) -> None:
        while not self._idle.empty():
            self._idle.get_nowait().close()


@contextmanager
def read_transaction(connection: Connection) -> Iterator[None]:
    """Let all reads within the block see one state of the tables."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def read_state(connection: Connection) -> State:
    return State(*connection.execute(sql.READ_STATE).fetchone())


def write_state(connection: Connection, state: State) -> State:
    """Write `state` with the next counter, and return it with that counter."""
    following = replace(state, counter=state.counter + 1)
    connection.execute(sql.WRITE_STATE, astuple(following))
    return following


def read_meta(connection: Connection, name: str) -> str | None:
    found = connection.execute(sql.READ_META, (name,)).fetchone()
    return found[0] if found else None


def write_meta(connection: Connection, name: str, value: str) -> None:
    connection.execute(sql.WRITE_META, (name, value))


def to_json_list(values: Iterable[str] | Iterable[int]) -> str:
    """Encode values for `json_each`, without those that no table can hold.

    SQLite reads a text only up to its first NUL: a reader token with a NUL in it would become another reader.
    """
    return json.dumps([value for value in values if isinstance(value, int) or is_storable(value)])


@contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Raise errors of the database as those of the product."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise TemporarilyUnavailableError(
                f"The index in {folder} is busy.", timedelta(seconds=BUSY_SECONDS)
            ) from error
        raise NotConfiguredError(
            f"The index in {folder} cannot be used: {error}. Check that its disk has free space and that its"
            " files can be read and written."
        ) from error
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.DatabaseError as error:
        raise DamagedDataError(
            f"The index in {folder} is damaged: {error}. Remove the folder and sync again; nothing is lost"
            " but the time to index."
        ) from error


def pack_labels(labels: Iterable[int]) -> bytes:
    return np.array(sorted(labels), "<i4").tobytes()


def unpack_labels(blob: bytes) -> list[int]:
    labels: list[int] = np.frombuffer(blob, "<i4").tolist()
    return labels


def to_microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // MICROSECOND


def to_datetime(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + microseconds * MICROSECOND


def to_chunk_row(row: int, ordinal: int, chunk: Chunk) -> Row:
    """Build a row of the table `chunks`; a text that is part of the embedded text is not stored twice."""
    start = chunk.embedded_text.find(chunk.text)
    return (
        row,
        ordinal,
        chunk.section,
        chunk.span.start,
        chunk.span.end,
        chunk.page,
        chunk.link,
        json.dumps(chunk.heading_path) if chunk.heading_path else None,
        chunk.embedded_text,
        start if start >= 0 else None,
        start + len(chunk.text) if start >= 0 else None,
        chunk.text if start < 0 else None,
    )


def to_details(chunk: Chunk, languages: Languages) -> str:
    """Encode fields that all chunks of a document share."""
    return json.dumps(
        {
            "languages": sorted(languages),
            "title": chunk.title,
            "source": chunk.source,
            "media_type": chunk.media_type,
            "tags": sorted(chunk.tags),
            "sets": sorted(chunk.sets),
            "projects": sorted(chunk.projects),
            "personas": sorted(chunk.personas),
            "owners": [[owner.name, owner.email] for owner in chunk.owners],
        }
    )


@lru_cache(maxsize=4_096)
def decode_access(encoded: str) -> Access:
    """Decode the access of a set of readers; cached, because many documents share one set."""
    return parse_access(json.loads(encoded))


def _document_fields(row: Row) -> dict[str, Any]:
    """Return the fields of Chunk that all chunks of a document share."""
    document_id, _, boost, created, updated, encoded, tokens = row
    details = json.loads(encoded)
    return {
        "document_id": document_id,
        "boost": boost,
        "created_at": to_datetime(created),
        "updated_at": to_datetime(updated),
        "title": details["title"],
        "source": details["source"],
        "media_type": details["media_type"],
        "tags": frozenset(details["tags"]),
        "sets": frozenset(details["sets"]),
        # A document that was indexed before there were projects and assistants has neither.
        "projects": frozenset(details.get("projects", ())),
        "personas": frozenset(details.get("personas", ())),
        "owners": tuple(Person(name, email) for name, email in details["owners"]),
        "access": decode_access(tokens),
    }


def _chunk(row: Row, first_row: int, shared: Mapping[str, Any]) -> Chunk:
    number, section, start, end, page, link, headings, embedded, text_start, text_end, text = row
    return Chunk(
        position=number - first_row,
        text=embedded[text_start:text_end] if text is None else text,
        embedded_text=embedded,
        section=section,
        span=Span(start, end),
        link=link,
        page=page,
        heading_path=tuple(json.loads(headings)) if headings else (),
        **shared,
    )


@dataclass(frozen=True, slots=True)
class FetchedChunk:
    row: int
    chunk: Chunk
    words: str
    """Its indexed words, joined by spaces."""


def read_chunks(found: Iterable[Row]) -> Iterator[FetchedChunk]:
    shared: dict[int, dict[str, Any]] = {}
    for words, *row in found:
        stored, ordinal, document = row[:11], row[11], row[12:]
        if ordinal not in shared:
            shared[ordinal] = _document_fields(tuple(document))
        yield FetchedChunk(stored[0], _chunk(tuple(stored), document[1], shared[ordinal]), words)


def read_document_chunks(connection: Connection, ordinal: int) -> list[Chunk]:
    """Return all chunks of a document without a check of access, for writers only; `hidden` is not set."""
    found = connection.execute(sql.CHUNKS_OF_DOCUMENT, (ordinal,))
    return [fetched.chunk for fetched in read_chunks(found)]
