"""The database: connections, transactions and migration of the tables."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, Table, inspect, select, text
from sqlalchemy.dialects import postgresql, sqlite

from backend.store import tables
from backend.store.dialects import READING, WRITING, create_engine_for, translate_errors
from connectors.errors import DamagedDataError

LATEST = "0005"
"""The migration that `tables.py` describes."""

_MIGRATIONS = Path(__file__).parent / "migrations"
_MIGRATION_LOCK = 7_361_502_114


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


def exclusive(connection: Connection) -> None:
    """Lock out other transactions that call this, until this one ends.

    It locks the rows of all sources, in one order, so that no two transactions deadlock. Rows that refer to a
    source can be added meanwhile. SQLite has one writer at a time anyway.
    """
    ids = select(tables.sources.c.id).order_by(tables.sources.c.id)
    connection.execute(ids.with_for_update(key_share=True))


def inserting(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return an insert that supports ON CONFLICT."""
    make = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return make(table)


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
