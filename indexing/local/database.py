"""Connections to the SQLite file that is the truth of the local index."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from datetime import timedelta
from pathlib import Path
from queue import Empty, LifoQueue
from typing import TypeAlias

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.index.validation import is_storable
from indexing.local import sql

BUSY_SECONDS = 30.0
MAPPED_BYTES = 1 << 30
"""Of the file, read by readers without a call for every page: a quarter off the time to fetch chunks."""

Connection: TypeAlias = sqlite3.Connection


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
    """A connection that any one thread at a time may use."""
    connection = sqlite3.connect(
        database_file(folder), timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def connect_writer(folder: Path) -> Connection:
    """A connection whose commits also survive a power cut.

    The full-text index is always on disk when its commit returns. A transaction of SQLite that could be
    lost after it would let row numbers be used twice.
    """
    connection = connect(folder)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


class Pool:
    """Connections for readers; each is used by one thread at a time and given back."""

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
def snapshot(connection: Connection) -> Iterator[None]:
    """All reads within see one state of the tables."""
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
    """Write `state` with the next counter, and return it so."""
    following = replace(state, counter=state.counter + 1)
    connection.execute(sql.WRITE_STATE, astuple(following))
    return following


def read_meta(connection: Connection, name: str) -> str | None:
    found = connection.execute(sql.READ_META, (name,)).fetchone()
    return found[0] if found else None


def write_meta(connection: Connection, name: str, value: str) -> None:
    connection.execute(sql.WRITE_META, (name, value))


def json_list(values: Iterable[str] | Iterable[int]) -> str:
    """Values for `json_each`, less those that no table holds.

    SQLite would read a text with a NUL in it as what stands before the NUL: as another reader, say.
    """
    return json.dumps([value for value in values if isinstance(value, int) or is_storable(value)])


@contextmanager
def named_errors(folder: Path) -> Iterator[None]:
    """Errors of the database, named by what the caller should do about them."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise TemporarilyUnavailableError(
                f"The index in {folder} is busy.", timedelta(seconds=BUSY_SECONDS)
            ) from error
        raise ActionRequiredError(
            f"The index in {folder} cannot be used: {error}. Check that its disk has room and that its"
            " files may be read and written."
        ) from error
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.DatabaseError as error:
        raise ActionRequiredError(
            f"The index in {folder} is damaged: {error}. Remove the folder and sync again; nothing but"
            " the time to index is lost."
        ) from error
