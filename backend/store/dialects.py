"""Everything specific to SQLite and PostgreSQL: how connections are made, and what their errors mean."""

import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as AllInUse
from sqlalchemy.pool import ConnectionPoolEntry

from connectors.errors import (
    DamagedDataError,
    NotConfiguredError,
    QuarryError,
    TemporarilyUnavailableError,
)

PATIENCE_SECONDS = 30
"""For a lock that another transaction holds."""
_IDLE_SECONDS = 60
"""After which PostgreSQL ends a transaction whose process has stopped in the middle of it."""
_BEGIN = "begin"

READING: Mapping[str, Mapping[str, object]] = {
    "sqlite": {_BEGIN: "BEGIN"},
    "postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
}
"""Options of a transaction that sees one state of the database, by the kind of that."""
WRITING: Mapping[str, Mapping[str, object]] = {
    "sqlite": {_BEGIN: "BEGIN IMMEDIATE"},
    "postgresql": {},
}


def create_engine_for(address: str) -> Engine:
    """Create the engine for an address; nothing connects yet.

    Raises:
        NotConfiguredError: the address is neither SQLite nor PostgreSQL, or the driver is not installed.
    """
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):  # its message may contain the password
        raise _no_address() from None
    match url.get_backend_name():
        case "sqlite":
            return _sqlite(url)
        case "postgresql" | "postgres":
            return _postgresql(url.set(drivername="postgresql+psycopg"))
        case _:
            raise _no_address()


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise errors of the driver as errors of the product, sorted by what the caller can do."""
    try:
        yield
    except AllInUse as error:
        raise TemporarilyUnavailableError(
            "All connections to the database are in use.", retry_after=timedelta(seconds=5)
        ) from error
    except DBAPIError as error:
        if (translated := _to_error(error)) is None:
            raise
        raise translated from error


def _no_address() -> NotConfiguredError:
    return NotConfiguredError(
        "QUARRY_DATABASE_URL is not the address of a supported database. Use"
        " postgresql://USER:PASSWORD@HOST/DATABASE (a sign like @ or / in the password as %40 or"
        " %2F), or unset it to use SQLite in the home."
    )


# SQLite


def _sqlite(url: URL) -> Engine:
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": PATIENCE_SECONDS}, hide_parameters=True)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
    del entry
    if not isinstance(connection, sqlite3.Connection):
        raise TypeError(f"not a connection of the sqlite3 module: {connection!r}")
    # The driver would begin transactions late and as readers: two writers would then deadlock.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")
    _switch_to_wal(connection)


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Retry, because SQLite's own busy timeout does not cover a change of the journal mode."""
    end = time.monotonic() + PATIENCE_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != ("wal",):
                raise NotConfiguredError(
                    "The database needs a file on a local disk, where readers and a writer can work"
                    " at once. Set QUARRY_HOME to a folder on one."
                )
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(str(connection.get_execution_options().get(_BEGIN, "BEGIN")))


# PostgreSQL


def _postgresql(url: URL) -> Engine:
    limits = {
        "lock_timeout": PATIENCE_SECONDS,
        "idle_in_transaction_session_timeout": _IDLE_SECONDS,
    }
    usual: dict[str, object] = {
        "application_name": "quarry",
        "connect_timeout": 10,
        # A server that vanished without closing the connection is noticed within a minute.
        "keepalives_idle": 20,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "options": " ".join(f"-c {name}={seconds}s" for name, seconds in limits.items()),
    }
    try:
        engine = create_engine(
            url,
            connect_args={name: value for name, value in usual.items() if name not in url.query},
            pool_size=10,
            max_overflow=20,
            pool_pre_ping=True,
            hide_parameters=True,
        )
    except ModuleNotFoundError as error:
        raise NotConfiguredError(
            "PostgreSQL needs a driver that is not installed: pip install"
            " 'quarry-search[postgresql]'."
        ) from error
    event.listen(engine, "before_cursor_execute", _without_nul, retval=True)
    return engine


def _without_nul(
    connection: object,
    cursor: object,
    statement: str,
    parameters: object,
    context: object,
    executemany: object,
) -> tuple[str, object]:
    del connection, cursor, context, executemany
    return statement, _replace_nul(parameters)


def _replace_nul(value: object) -> object:
    """Replace NUL, which PostgreSQL does not store: one in a title must not stop a run."""
    match value:
        case str():
            return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
        case dict():
            return {name: _replace_nul(each) for name, each in value.items()}
        case list() | tuple():
            return type(value)(_replace_nul(each) for each in value)
        case _:
            return value


# Errors


def _to_error(error: DBAPIError) -> QuarryError | None:
    if isinstance(error.orig, sqlite3.Error):
        return _sqlite_error(error.orig)
    if (state := getattr(error.orig, "sqlstate", None)) is not None:
        return _postgresql_error(state, _message(error))
    if isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated:
        return _connection_error(_message(error))
    return None


def _message(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split()).rstrip(".")


def _sqlite_error(error: sqlite3.Error) -> QuarryError | None:
    if isinstance(error, sqlite3.OperationalError) and re.search(r"locked|busy", str(error)):
        return _held_too_long()
    if isinstance(error, sqlite3.OperationalError):
        return NotConfiguredError(
            f"The database cannot be used: {error}. Check that its folder can be written to,"
            " that the disk has room, and QUARRY_DATABASE_URL if it is set."
        )
    if type(error) is sqlite3.DatabaseError:
        return DamagedDataError(
            f"The database is damaged: {error}. Put back a copy of it, or move it away and sync"
            " again."
        )
    return None


def _postgresql_error(state: str, words: str) -> QuarryError | None:
    """Sort by SQLSTATE; PostgreSQL's manual lists the codes in its appendix A."""
    match state[:2], state:
        case _, "55P03":
            return _held_too_long()
        case _, "40001" | "40P01":
            return TemporarilyUnavailableError(
                f"Two transactions conflicted ({words}).",
                retry_after=timedelta(seconds=1),
            )
        case ("08" | "57", _) | (_, "53300" | "25P03"):
            return _away(words)
        case "28" | "3D", _:
            return _refused(words)
        case _, "42501":
            return NotConfiguredError(
                f"Quarry's user lacks a privilege in PostgreSQL: {words}. Make that user the owner of the"
                " database: ALTER DATABASE name OWNER TO user."
            )
        case "53", _:
            return NotConfiguredError(
                f"PostgreSQL has run out of a resource: {words}. Raise its limit."
            )
        case _:
            return None


def _connection_error(words: str) -> QuarryError:
    """Sort by message: without a connection there is no SQLSTATE."""
    if re.search(_REFUSALS, words):
        return _refused(words)
    return _away(words)


_REFUSALS = (
    r"authentication failed|no password supplied|pg_hba\.conf|(role|database) .* does not exist"
    r"|invalid (connection|URI|port|sslmode)|certificate|does not support SSL|SSL was required"
)


def _held_too_long() -> TemporarilyUnavailableError:
    return TemporarilyUnavailableError(
        "Another process has held the database for too long.",
        retry_after=timedelta(seconds=PATIENCE_SECONDS),
    )


def _away(words: str) -> TemporarilyUnavailableError:
    return TemporarilyUnavailableError(
        f"The database does not answer: {words}. If this persists, check that PostgreSQL runs at the"
        " address in QUARRY_DATABASE_URL.",
        retry_after=timedelta(seconds=10),
    )


def _refused(words: str) -> NotConfiguredError:
    return NotConfiguredError(
        f"PostgreSQL refused the connection: {words}. Correct the user, the password or the database"
        " in QUARRY_DATABASE_URL."
    )
