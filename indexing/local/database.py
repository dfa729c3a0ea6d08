"""Connections to the SQLite file that holds the local index, and the lock of its writers."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, replace
from datetime import timedelta
from pathlib import Path
from queue import Empty, LifoQueue
from typing import TypeAlias

from connectors.errors import DamagedDataError, NotConfiguredError, TemporarilyUnavailableError
from indexing.local import sql
from indexing.text.normalization import is_storable

BUSY_SECONDS = 30.0
LOCK_TIMEOUT = 120.0
"""Seconds to wait for another writer: longer than any one batch and than most rebuilds take."""
MAPPED_BYTES = 1 << 30
"""Bytes of the file that readers map into memory, which makes fetching chunks a quarter faster."""

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
