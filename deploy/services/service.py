"""The servers, one class each: how one is prepared, started, asked whether it answers, and addressed.

PostgreSQL refuses to run as root. Where root starts a server, it runs as the account that its Debian package has made.
"""

import os
import secrets
import shutil
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from deploy.opensearch.releases import SetupError
from deploy.services.software import program

Data: TypeAlias = Literal["kept", "passing"]
"""Whether what is stored outlives a power cut, or is stored quickly."""


@dataclass(frozen=True, kw_only=True)
class Service(ABC):
    """A server on loopback, with a password of its own."""

    name: ClassVar[str]
    title: ClassVar[str]
    variable: ClassVar[str]
    """In which tests look for its address."""
    usual_port: ClassVar[int]
    account: ClassVar[str]
    """That it runs as where root starts it."""

    folder: Path
    port: int
    data: Data = "kept"

    @property
    @abstractmethod
    def url(self) -> str:
        """Once it is prepared."""

    @property
    @abstractmethod
    def command(self) -> list[str]:
        """That is the server, in the foreground."""

    @abstractmethod
    def answers(self) -> bool: ...

    @abstractmethod
    def initialise(self) -> None:
        """Make what it needs in its folder, once."""

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def store(self) -> Path:
        return self.folder / "data"

    @property
    def password(self) -> str:
        return (self.folder / "password").read_text(encoding="ascii").strip()

    @property
    def user(self) -> str | None:
        """Other than this one, to run it as."""
        return self.account if os.geteuid() == 0 else None

    def prepare(self) -> None:
        """Raises SetupError: its account is missing, or cannot reach the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711)
        self.store.mkdir(mode=0o700, exist_ok=True)
        self._give(self.store)
        if not (self.folder / "password").exists():
            self.write("password", secrets.token_urlsafe(16))
        if self.run("test", "-x", str(self.store)).returncode:
            raise SetupError(
                f"{self.title} runs as {self.account}, which cannot reach {self.store}: let others"
                " pass through the folders above it, or start it without root."
            )
        self.initialise()

    def write(self, name: str, text: str) -> Path:
        """A file that its account alone may read, and root."""
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="ascii")
        self._give(path)
        return path

    def run(self, *command: str, said: str = "") -> subprocess.CompletedProcess[str]:
        """A command, as its account."""
        return subprocess.run(
            command,
            user=self.user,
            group=self.user,
            extra_groups=self.user and [],
            cwd="/",
            input=said,
            capture_output=True,
            text=True,
            check=False,
        )

    def must_run(self, *command: str, said: str = "") -> None:
        done = self.run(*command, said=said)
        if done.returncode:
            raise SetupError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")

    def _give(self, path: Path) -> None:
        if self.user:
            try:
                shutil.chown(path, self.user, self.user)
            except LookupError as error:
                raise SetupError(
                    f"{self.title} runs as {self.account}, an account that Debian's package makes"
                    " and that is missing here. Start it without root."
                ) from error


@dataclass(frozen=True, kw_only=True)
class PostgreSql(Service):
    name = "postgresql"
    title = "PostgreSQL"
    variable = "QUARRY_TEST_POSTGRESQL"
    usual_port = 5544
    account = "postgres"

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://quarry:{self.password}@127.0.0.1:{self.port}/quarry"

    @property
    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "200",
            **({} if self.data == "kept" else _QUICK),
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [str(program("postgres")), "-D", str(self.store), *options]

    def answers(self) -> bool:
        asked = [str(program("pg_isready")), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return not self.run(*asked).returncode

    def initialise(self) -> None:
        if (self.store / "global" / "pg_control").exists() and self._ready_mark.exists():
            return
        shutil.rmtree(self.store)  # an initialisation that was broken off
        self.store.mkdir(mode=0o700)
        self._give(self.store)
        password = f"--pwfile={self.folder / 'password'}"
        options = ["--username=quarry", "--auth=scram-sha-256", password, "--encoding=UTF8"]
        if self.data == "passing":
            options.append("--no-sync")
        initdb = str(program("initdb"))
        self.must_run(initdb, "-D", str(self.store), *options, "--locale=C.UTF-8")
        server = [str(program("postgres")), "--single", "-D", str(self.store), "postgres"]
        self.must_run(*server, said="CREATE DATABASE quarry\n")
        self._ready_mark.touch()

    @property
    def _ready_mark(self) -> Path:
        return self.folder / "initialised"


_QUICK = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}


@dataclass(frozen=True, kw_only=True)
class Redis(Service):
    name = "redis"
    title = "Redis"
    variable = "QUARRY_TEST_REDIS"
    usual_port = 6390
    account = "redis"

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    @property
    def command(self) -> list[str]:
        return [str(program("redis-server")), str(self.folder / "redis.conf")]

    def answers(self) -> bool:
        try:
            said = f"AUTH {self.password}\r\nPING\r\nQUIT\r\n".encode()
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(said)
                received = b"".join(iter(lambda: connection.recv(1024), b""))
        except OSError:
            return False
        return b"+PONG" in received

    def initialise(self) -> None:
        settings = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "dir": f'"{self.store}"',
            "requirepass": self.password,
            "save": '""',
            "appendonly": "yes" if self.data == "kept" else "no",
        }
        self.write("redis.conf", "".join(f"{name} {value}\n" for name, value in settings.items()))


KINDS: Sequence[type[Service]] = (PostgreSql, Redis)
