"""The database: connections, transactions and migration of the tables, on SQLite and PostgreSQL."""

import json
import logging
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    BindParameter,
    Connection,
    DateTime,
    Dialect,
    Engine,
    Select,
    Table,
    Text,
    TypeDecorator,
    bindparam,
    cast,
    create_engine,
    event,
    func,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as AllInUse
from sqlalchemy.pool import ConnectionPoolEntry

from backend.store.database_errors import PATIENCE_SECONDS, to_product_error
from connectors.errors import (
    DamagedDataError,
    NotConfiguredError,
    TemporarilyUnavailableError,
)
from indexing.text.normalization import is_storable

LOG = logging.getLogger("quarry.store")
LATEST = "0050"
"""The migration that `tables.py` describes."""

_MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATION_LOCK = 7_361_502_114
_EXCLUSIVE_LOCK = 7_361_502_115

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


@dataclass(frozen=True, slots=True)
class Database:
    engine: Engine
    _open: Connection | None = None
    """The transaction that all reads and writes belong to; without one, each has its own."""

    def reading(self) -> AbstractContextManager[Connection]:
        """Begin a transaction that sees one state of the database and waits for no writer."""
        return nullcontext(self._open) if self._open else self._begin(READING)

    def writing(self) -> AbstractContextManager[Connection]:
        """Begin a transaction that is committed at the end of the block, or rolled back by an error."""
        return nullcontext(self._open) if self._open else self._begin(WRITING)

    @contextmanager
    def snapshot(self) -> Iterator["Database"]:
        """Yield this database as one transaction sees it. Nothing may be written in the block."""
        with self.reading() as connection:
            yield Database(self.engine, connection)

    @contextmanager
    def transaction(self) -> Iterator["Database"]:
        """Yield this database so that all reads and writes in the block are one transaction.

        It excludes others of its kind from its start: what it checks still holds when it writes.
        """
        with self.writing() as connection:
            exclusive(connection)
            yield Database(self.engine, connection)

    @contextmanager
    def _begin(self, options: Mapping[str, Mapping[str, object]]) -> Iterator[Connection]:
        with translate_errors(), self.engine.connect() as connection:
            connection.execution_options(**options[self.engine.name])
            with connection.begin():
                yield connection

    def close(self) -> None:
        self.engine.dispose()


def open_database(url: str) -> Database:
    """Open the database at a SQLAlchemy URL; create it, or migrate its tables, where necessary.

    Raises:
        DamagedDataError: it is damaged, or was made by a newer version of this program.
        NotConfiguredError: it cannot be opened.
        TemporarilyUnavailableError: another process holds it, or it does not answer.
    """
    with ExitStack() as failed:
        database = Database(create_engine_for(url))
        failed.callback(database.close)
        upgrade(database)
        failed.pop_all()
    return database


def sqlite_url(path: Path) -> str:
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def upgrade(database: Database) -> None:
    """Migrate the tables to the latest version; of several processes, one does it."""
    with database.reading() as connection:
        version = _version(connection)
    if version != LATEST:
        with database.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _MIGRATION_LOCK})
            _migrate(connection)
        if version is not None:
            LOG.info("The database was migrated from version %s to %s.", version, LATEST)


def exclusive(connection: Connection) -> None:
    """Lock out other transactions that call this, until this one ends.

    It locks the rows of all sources as well, in one order, so that no two transactions deadlock. Rows that refer to a
    source can be added meanwhile. SQLite has one writer at a time anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _EXCLUSIVE_LOCK})
        connection.execute(text("SELECT id FROM sources ORDER BY id FOR NO KEY UPDATE"))


def inserting(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return an insert that supports ON CONFLICT."""
    make = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return make(table)


def select_texts(dialect: str, values: Iterable[str]) -> Select[tuple[str]]:
    """Return a subquery of these texts, all in one parameter: databases limit the number of parameters."""
    return _select_from(dialect, encode_texts(dialect, values))


def select_bound_texts(dialect: str, name: str) -> Select[tuple[str]]:
    """Return such a subquery for a parameter of this name, whose value `encode_texts` makes."""
    return _select_from(dialect, bindparam(name))


def encode_texts(dialect: str, values: Iterable[str]) -> Sequence[str]:
    """Return these texts as one parameter.

    Those that cannot be stored are left out: SQLite would read one only up to its first NUL.
    """
    texts = list(filter(is_storable, values))
    return texts if dialect == "postgresql" else json.dumps(texts)


def _select_from(dialect: str, texts: Sequence[str] | BindParameter[Any]) -> Select[tuple[str]]:
    if dialect == "postgresql":
        return select(func.unnest(cast(texts, postgresql.ARRAY(Text))))
    return select(func.json_each(texts).table_valued("value").c.value)


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, object]],
    kept: frozenset[str] = frozenset(),
) -> None:
    """Insert rows, or update those of the same primary key, except for the `kept` columns."""
    if not rows:
        return
    keys = [column.name for column in table.primary_key]
    statement = inserting(connection, table)
    fresh = {name: statement.excluded[name] for name in rows[0] if name not in {*keys, *kept}}
    connection.execute(
        statement.on_conflict_do_update(index_elements=keys, set_=fresh), [dict(r) for r in rows]
    )


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
        raise DamagedDataError(
            "The database was made by a newer Quarry than this one"
            f" (its version is {_version(connection)}, this program knows {LATEST})."
            " Install the newer Quarry, or set QUARRY_HOME to another folder."
        ) from error


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
        if (translated := to_product_error(error)) is None:
            raise
        raise translated from error


def _no_address() -> NotConfiguredError:
    return NotConfiguredError(
        "QUARRY_DATABASE_URL is not the address of a supported database. Use"
        " postgresql://USER:PASSWORD@HOST/DATABASE (a sign like @ or / in the password as %40 or"
        " %2F), or unset it to use SQLite in the home."
    )


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


class Moment(TypeDecorator[datetime]):
    """An aware datetime, stored in UTC, because SQLite stores no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        if value is not None and value.tzinfo is None:
            raise ValueError(f"a time without a time zone: {value}")
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        return value and (value.replace(tzinfo=UTC) if value.tzinfo is None else value)
