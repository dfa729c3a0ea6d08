"""Real PostgreSQL and Redis for tests: those that a run of the suite shares, and servers of a test's own to be mistreated.

`make test` starts the shared ones and exports their addresses; a pytest by hand starts what it needs itself. A test has
a database of its own, which is empty and up to date: a copy, or one that was emptied. Its order of words is that of English, so that
whatever should go by code points has to say so.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed, Identifier
from sqlalchemy import make_url

from backend.store import database as database_module
from backend.store.database import open_database, sqlite_url
from deploy.opensearch.node import find_free_ports
from deploy.opensearch.releases import SetupError
from deploy.services.service import PostgreSql, Redis, Service
from deploy.services.software import install
from deploy.services.supervisor import end, kill, tails, tether, wait

START_SECONDS = 60
"""For a busy machine; at rest a server takes one."""
_NUMBERS = count(1)
make_sqlite_engine = database_module._sqlite
"""As the product makes it; `_copy_databases` of tests/conftest.py replaces it."""


class Server(AbstractContextManager["Server"]):
    """A PostgreSQL or Redis of a test's own, on a free port and in a folder that is gone afterwards.

    It keeps port, password and data over `stop`, `kill` and `start`, and ends when the test process does, however that
    happens. It is started when its `with` block is entered.
    """

    def __init__(self, kind: type[Service]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=f"quarry-{kind.name}-")
        self._process: subprocess.Popen[bytes] | None = None
        (port,) = find_free_ports(1)
        self.service = kind(folder=Path(self._folder.name), port=port, data="passing")

    @property
    def url(self) -> str:
        return self.service.url

    def start(self) -> None:
        """Start it, once more after `stop` or `kill`; it answers."""
        if self._process and self._process.poll() is None:
            raise ValueError(f"{self.service.title} runs already")
        for _ in range(3):
            with suppress(SetupError):
                self._start()
                return
            time.sleep(0.5)  # of a server that was killed, some process may work on for a moment
        self._start()

    def _start(self) -> None:
        self._process = tether(self.service)
        with ExitStack() as failed:
            failed.callback(kill, self._process)
            wait([self.service], [self._process], START_SECONDS)
            failed.pop_all()

    def stop(self) -> None:
        """As an administrator would: its clients are sent away."""
        if self._process:
            end(self._process)

    def kill(self) -> None:
        """SIGKILL: gone in the middle of whatever it did."""
        if self._process:
            kill(self._process)

    def log(self) -> str:
        return tails([self.service])

    def __enter__(self) -> Self:
        install()
        with ExitStack() as stack:
            stack.callback(self.close)
            self.start()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.kill()
        self._folder.cleanup()


@contextmanager
def shared(kind: type[Service]) -> Iterator[str]:
    """The address of a server that the whole run shares; where none is given, one for this process."""
    if url := os.environ.get(kind.variable):
        yield url
    else:
        with Server(kind) as server:
            yield server.url


def sqlite_in(folder: Path) -> str:
    """The URL of the SQLite database in a folder. A new one is up to date and has nothing in it."""
    file = folder / "quarry.db"
    copy_template_to(file)
    return sqlite_url(file)


def copy_template_to(file: Path) -> None:
    """Make a database that is up to date and has nothing in it where there is no file."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent) as whole:
            whole.write(read_sqlite_template())
            whole.flush()
            # Of several threads that make it at once, one does.
            with suppress(FileExistsError):
                os.link(whole.name, file)


@cache
def read_sqlite_template() -> bytes:
    """Return the file of a migrated database: to copy it takes a twentieth of the time of the migrations."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "template.db"
        open_database(sqlite_url(file)).close()
        return file.read_bytes()


class SharedStatements(dict[Any, Any]):
    """What SQLAlchemy compiled, by the statement and the kind of database instead of by the engine.

    Each test has an engine of its own, which would compile every statement anew: that takes a quarter of the time of a short test.
    """

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_of_any_engine(key), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        if len(self) >= _MOST_STATEMENTS:
            self.clear()
        super().__setitem__(_of_any_engine(key), compiled)


def _of_any_engine(key: Any) -> Any:
    dialect, *statement = key
    return type(dialect), *statement


class Databases:
    """Makes databases on one PostgreSQL, each a copy of one that Quarry has brought up to date.

    To copy one takes many times as long as to empty it: one that is given back is emptied and given out again, under
    another name, so that who still holds on to it does not find it.
    """

    def __init__(self, server: str) -> None:
        """`server`: the URL of a database to command from, which is left as it is."""
        self.server = server
        self._pattern: _Pattern | None = None
        self._free: list[str] = []

    @contextmanager
    def new(self) -> Iterator[str]:
        """The URL of one that is up to date and has nothing in it; it is gone after the block."""
        if self._pattern is None:
            self._pattern = self._made_pattern()
        name = self._free.pop() if self._free else self._made("TEMPLATE {}", self._pattern.name)
        yield self._url(name)
        self._give_back(name, self._pattern)

    @contextmanager
    def empty(self) -> Iterator[str]:
        """The URL of one without a table; it is gone after the block."""
        name = self._made(_ENGLISH)
        yield self._url(name)
        self._drop(name)

    def close(self) -> None:
        for name in (*self._free, *([self._pattern.name] if self._pattern else [])):
            self._drop(name)

    def _made_pattern(self) -> "_Pattern":
        name = self._made(_ENGLISH)
        open_database(self._url(name)).close()
        with self._connect(name) as connection:
            return _Pattern.of(name, connection)

    def _made(self, how: str, *names: str) -> str:
        name = _make_name()
        given = SQL(how).format(*map(Identifier, names))
        self._command(SQL("CREATE DATABASE {} ").format(Identifier(name)) + given)
        return name

    def _give_back(self, name: str, pattern: "_Pattern") -> None:
        """Empty a database for the next test, unless it is not what it was."""
        renamed = _make_name()
        try:
            self._command(
                SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false").format(Identifier(name)),
                SQL(_SEND_AWAY).format(name),
                SQL("ALTER DATABASE {} RENAME TO {}").format(Identifier(name), Identifier(renamed)),
                SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS true").format(Identifier(renamed)),
            )
        except psycopg.errors.ObjectInUse:
            self._drop(name)
            return
        with self._connect(renamed) as connection:
            is_as_before = pattern.restore(connection)
        if is_as_before:
            self._free.append(renamed)
        else:
            self._drop(renamed)

    def _drop(self, name: str) -> None:
        """With whoever is connected still."""
        self._command(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))

    def _command(self, *commands: Composed) -> None:
        with self._connect() as connection:
            for command in commands:
                connection.execute(command)

    @contextmanager
    def _connect(self, name: str | None = None) -> "Iterator[psycopg.Connection[TupleRow]]":
        url = self.server if name is None else self._url(name)
        address = make_url(url).set(drivername="postgresql")
        with closing(
            psycopg.connect(address.render_as_string(hide_password=False), autocommit=True)
        ) as connection:
            yield connection

    def _url(self, name: str) -> str:
        return make_url(self.server).set(database=name).render_as_string(hide_password=False)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A database that is up to date, and what is in it."""

    name: str
    schema: str
    size: int
    rows: Mapping[str, bytes]
    """Of each table, as PostgreSQL copies them; most are empty."""

    @classmethod
    def of(cls, name: str, connection: "psycopg.Connection[TupleRow]") -> Self:
        schema, size = _describe(connection)
        tables = [str(row[0]) for row in connection.execute(_TABLES)]
        return cls(name, schema, size, {table: _copy_rows(connection, table) for table in tables})

    def restore(self, connection: "psycopg.Connection[TupleRow]") -> bool:
        """Put a database that was made like this into its first state; False where that cannot be done."""
        schema, size = _describe(connection)
        if schema != self.schema or size > self.size + _MOST_GROWTH:
            return False
        connection.execute(
            "SET session_replication_role = replica"
        )  # rows are deleted in any order
        connection.execute("; ".join(f'DELETE FROM "{table}"' for table in self.rows))
        for table, rows in self.rows.items():
            if rows:
                with connection.cursor().copy(f'COPY "{table}" FROM STDIN') as copied:
                    copied.write(rows)
        connection.execute(_RESTART_SEQUENCES)
        return True


def _describe(connection: "psycopg.Connection[TupleRow]") -> tuple[str, int]:
    """Return what its tables are like, and how many bytes it takes."""
    found = connection.execute(_DESCRIBE).fetchone()
    assert found is not None
    return found[0], found[1]


def _copy_rows(connection: "psycopg.Connection[TupleRow]", table: str) -> bytes:
    with connection.cursor().copy(f'COPY "{table}" TO STDOUT') as copied:
        return b"".join(bytes(block) for block in copied)


def _make_name() -> str:
    return f"test_{os.getpid()}_{next(_NUMBERS)}"


_MOST_STATEMENTS = 5_000
"""More than the suite has; those that are made at random add to them."""
_MOST_GROWTH = 4_000_000
"""Bytes after which a database is not given out again: nothing clears away what was deleted."""
_SEND_AWAY = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}"
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
_RESTART_SEQUENCES = (
    "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)"
    " FROM pg_sequences WHERE last_value IS NOT NULL"
)
_DESCRIBE = """
SELECT md5(concat(
    (SELECT string_agg(concat(attrelid, attname, atttypid, attnotnull, attcollation), ',' ORDER BY attrelid, attnum)
     FROM pg_attribute WHERE attrelid >= 16384),
    (SELECT string_agg(concat(oid, conname, contype), ',' ORDER BY oid) FROM pg_constraint WHERE oid >= 16384),
    (SELECT string_agg(concat(oid, relname, relacl), ',' ORDER BY oid) FROM pg_class WHERE oid >= 16384),
    (SELECT count(*) FROM pg_trigger), (SELECT count(*) FROM pg_rewrite), (SELECT count(*) FROM pg_namespace),
    (SELECT concat(datconnlimit, datacl) FROM pg_database WHERE datname = current_database()),
    (SELECT string_agg(concat(setrole, setconfig), ',') FROM pg_db_role_setting
     WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))
)), pg_database_size(current_database())
"""
_ENGLISH = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"

__all__ = ["Databases", "PostgreSql", "Redis", "Server", "SharedStatements", "shared"]
