"""Opening the database: connections, transactions, and bringing the tables up to date."""

import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Table,
    create_engine,
    event,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from backend.store import tables
from connectors.errors import AskTheOwner, RetryLater

LATEST = "0001"
"""The migration that `tables.py` describes."""

_MIGRATIONS = Path(__file__).parent / "migrations"
_PATIENCE_SECONDS = 30
_MIGRATION_LOCK = 7_361_502_114
_BEGIN = "begin"


@dataclass(frozen=True, slots=True)
class Database:
    engine: Engine

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database and waits for no writer."""
        with _told(), self.engine.connect() as connection:
            connection.execution_options(**{_BEGIN: "BEGIN"})
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is saved at the end of the block, or leaves nothing."""
        with _told(), self.engine.connect() as connection:
            connection.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
            with connection.begin():
                yield connection

    def close(self) -> None:
        self.engine.dispose()


def open_database(url: str) -> Database:
    """The database at a SQLAlchemy URL, made or brought up to date where it has to be.

    Raises:
        AskTheOwner: it is newer than this program, broken, or cannot be opened.
        RetryLater: another process holds it.
    """
    database = Database(_engine(make_url(url)))
    upgrade(database)
    return database


def sqlite_url(path: Path) -> str:
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def upgrade(database: Database) -> None:
    """Bring the tables up to date; two processes at once do it once. See `open_database`."""
    with database.reading() as connection:
        version = _version(connection)
    if version != LATEST:
        with database.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _MIGRATION_LOCK})
            _migrate(connection)


def exclusive(connection: Connection) -> None:
    """Let no other transaction change documents until this one ends. SQLite's writers are alone."""
    connection.execute(select(tables.sources.c.id).order_by(tables.sources.c.id).with_for_update())


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, object]],
    kept: frozenset[str] = frozenset(),
) -> None:
    """Insert rows, or write them over those of the same primary key, but for the `kept` columns."""
    if not rows:
        return
    keys = [column.name for column in table.primary_key]
    make = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = make(table)
    fresh = {name: statement.excluded[name] for name in rows[0] if name not in {*keys, *kept}}
    connection.execute(
        statement.on_conflict_do_update(index_elements=keys, set_=fresh), [dict(r) for r in rows]
    )


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"timeout": _PATIENCE_SECONDS})
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
    end = time.monotonic() + _PATIENCE_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != ("wal",):
                raise AskTheOwner(
                    "The database needs a file on a local disk, where readers and a writer can work"
                    " at once. Set QUARRY_HOME to a folder on one."
                )
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(str(connection.get_execution_options().get(_BEGIN, "BEGIN")))


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    version = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return None if version is None else str(version)


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise AskTheOwner(
            "The database was made by a newer Quarry than this one"
            f" (its version is {_version(connection)}, this program knows {LATEST})."
            " Install the newer Quarry, or set QUARRY_HOME to another folder."
        ) from error


@contextmanager
def _told() -> Iterator[None]:
    """The driver's errors, sorted by what to do about them."""
    try:
        yield
    except OperationalError as error:
        if re.search(r"locked|busy", str(error.orig)):
            raise RetryLater(
                "Another process has held the database for too long.",
                after=timedelta(seconds=_PATIENCE_SECONDS),
            ) from error
        raise AskTheOwner(
            f"The database cannot be used: {error.orig}. Check that its folder can be written to,"
            " that the disk has room, and QUARRY_DATABASE_URL if it is set."
        ) from error
    except DatabaseError as error:
        if isinstance(error.orig, sqlite3.DatabaseError) and type(error.orig) is (
            sqlite3.DatabaseError
        ):
            raise AskTheOwner(
                f"The database is damaged: {error.orig}. Put back a copy of it, or move it away"
                " and sync again."
            ) from error
        raise
