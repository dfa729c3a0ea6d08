"""Real PostgreSQL and Redis for tests: those that a run of the suite shares, and servers of a test's own to be mistreated.

`make test` starts the shared ones and exports their addresses; a pytest by hand starts what it needs itself. A test has
a database of its own, copied from one that is empty and up to date. Its order of words is that of English, so that
whatever should go by code points has to say so.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Self

import psycopg
from psycopg.sql import SQL, Composed, Identifier
from sqlalchemy import make_url

from backend.store.database import open_database, sqlite_url
from deploy.opensearch.node import find_free_ports
from deploy.opensearch.releases import SetupError
from deploy.services.keeper import end, kill, tails, tether, wait
from deploy.services.service import PostgreSql, Redis, Service
from deploy.services.software import install

START_SECONDS = 60
"""For a busy machine; at rest a server takes one."""
_NUMBERS = count(1)


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
    if not file.exists():
        file.write_bytes(_sqlite_pattern())
    return sqlite_url(file)


@cache
def _sqlite_pattern() -> bytes:
    """Return the file of a migrated database: to copy it takes a twentieth of the time of the migrations."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pattern.db"
        open_database(sqlite_url(file)).close()
        return file.read_bytes()


class Databases:
    """Makes databases on one PostgreSQL, each a copy of one that Quarry has brought up to date."""

    def __init__(self, server: str) -> None:
        """`server`: the URL of a database to command from, which is left as it is."""
        self.server = server
        self._pattern: str | None = None

    @contextmanager
    def new(self) -> Iterator[str]:
        """The URL of one that is up to date and has nothing in it; it is gone after the block."""
        if self._pattern is None:
            self._pattern = self._made_pattern()
        name = self._made("TEMPLATE {}", self._pattern)
        yield self._url(name)
        self._drop(name)

    @contextmanager
    def empty(self) -> Iterator[str]:
        """The URL of one without a table; it is gone after the block."""
        name = self._made(_ENGLISH)
        yield self._url(name)
        self._drop(name)

    def close(self) -> None:
        if self._pattern is not None:
            self._drop(self._pattern)

    def _made_pattern(self) -> str:
        name = self._made(_ENGLISH)
        open_database(self._url(name)).close()
        return name

    def _made(self, how: str, *names: str) -> str:
        name = f"test_{os.getpid()}_{next(_NUMBERS)}"
        given = SQL(how).format(*map(Identifier, names))
        self._command(SQL("CREATE DATABASE {} ").format(Identifier(name)) + given)
        return name

    def _drop(self, name: str) -> None:
        """With whoever is connected still."""
        self._command(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))

    def _command(self, command: Composed) -> None:
        url = make_url(self.server).set(drivername="postgresql")
        address = url.render_as_string(hide_password=False)
        with closing(psycopg.connect(address, autocommit=True)) as connection:
            connection.execute(command)

    def _url(self, name: str) -> str:
        return make_url(self.server).set(database=name).render_as_string(hide_password=False)


_ENGLISH = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"

__all__ = ["Databases", "PostgreSql", "Redis", "Server", "shared"]
