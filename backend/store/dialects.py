"""What the drivers of SQLite and PostgreSQL need: how connections are made, and what their errors mean."""

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

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError

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


def engine_at(address: str) -> Engine:
    """Nothing is asked of the database yet.

    Raises:
        ActionRequiredError: it is neither SQLite nor PostgreSQL, or the driver of that is not installed.
    """
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):  # its words may hold the password
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
    """The driver's errors, sorted by what to do about them."""
    try:
        yield
    except AllInUse as error:
        raise TemporarilyUnavailableError(
            "All connections to the database are in use.", retry_after=timedelta(seconds=5)
        ) from error
    except DBAPIError as error:
        if (meaning := _meaning(error)) is None:
            raise
        raise meaning from error


def _no_address() -> ActionRequiredError:
    return ActionRequiredError(
        "QUARRY_DATABASE_URL is no address of a database that Quarry can use. Write"
        " postgresql://USER:PASSWORD@HOST/DATABASE (a sign like @ or / in the password as %40 or"
        " %2F), or leave it out for SQLite in the home."
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
    """SQLite does not wait by itself here, where two processes make a database at once."""
    end = time.monotonic() + PATIENCE_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != ("wal",):
                raise ActionRequiredError(
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
        # A server that is gone without a word is noticed within a minute.
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
        raise ActionRequiredError(
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
    return statement, _cleaned(parameters)


def _cleaned(value: object) -> object:
    """PostgreSQL keeps no NUL in a text, and one in a title shall not stop a run."""
    match value:
        case str():
            return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
        case dict():
            return {name: _cleaned(each) for name, each in value.items()}
        case list() | tuple():
            return type(value)(_cleaned(each) for each in value)
        case _:
            return value


# Errors


def _meaning(error: DBAPIError) -> TemporarilyUnavailableError | ActionRequiredError | None:
    if isinstance(error.orig, sqlite3.Error):
        return _of_sqlite(error.orig)
    if (state := getattr(error.orig, "sqlstate", None)) is not None:
        return _of_postgresql(state, _words(error))
    if isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated:
        return _of_connecting(_words(error))
    return None


def _words(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split()).rstrip(".")


def _of_sqlite(error: sqlite3.Error) -> TemporarilyUnavailableError | ActionRequiredError | None:
    if isinstance(error, sqlite3.OperationalError) and re.search(r"locked|busy", str(error)):
        return _held_too_long()
    if isinstance(error, sqlite3.OperationalError):
        return ActionRequiredError(
            f"The database cannot be used: {error}. Check that its folder can be written to,"
            " that the disk has room, and QUARRY_DATABASE_URL if it is set."
        )
    if type(error) is sqlite3.DatabaseError:
        return ActionRequiredError(
            f"The database is damaged: {error}. Put back a copy of it, or move it away and sync"
            " again."
        )
    return None


def _of_postgresql(
    state: str, words: str
) -> TemporarilyUnavailableError | ActionRequiredError | None:
    """By the code of the error, as an appendix of PostgreSQL's manual lists them."""
    match state[:2], state:
        case _, "55P03":
            return _held_too_long()
        case _, "40001" | "40P01":
            return TemporarilyUnavailableError(
                f"Two changes of the database got into each other's way ({words}).",
                retry_after=timedelta(seconds=1),
            )
        case ("08" | "57", _) | (_, "53300" | "25P03"):
            return _away(words)
        case "28" | "3D", _:
            return _refused(words)
        case _, "42501":
            return ActionRequiredError(
                f"PostgreSQL does not let Quarry's user work: {words}. Let that user own the"
                " database: ALTER DATABASE name OWNER TO user."
            )
        case "53", _:
            return ActionRequiredError(
                f"PostgreSQL has run out of something: {words}. Give it more of that."
            )
        case _:
            return None


def _of_connecting(words: str) -> TemporarilyUnavailableError | ActionRequiredError:
    """Before a connection stands and after it is lost there is no code, only words."""
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
        f"The database does not answer: {words}. If it stays so, see whether PostgreSQL runs at the"
        " address in QUARRY_DATABASE_URL.",
        retry_after=timedelta(seconds=10),
    )


def _refused(words: str) -> ActionRequiredError:
    return ActionRequiredError(
        f"PostgreSQL does not let Quarry in: {words}. Correct the user, the password or the database"
        " in QUARRY_DATABASE_URL."
    )
