"""A server stops in the middle of a run, and comes back: the run ends right, by itself, and said what it waited for."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from backend.schemas.source import SourceResponse
from backend.settings import Settings
from backend.store.database import Database
from backend.store.sync import workers
from tests.support.databases import PostgreSql, Redis, Server
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.home import QUARRY, Home
from tests.support.kills import KeptContainer, check
from tests.support.opensearch_server import Server as OpenSearch
from tests.support.serving import Serving, serving
from tests.support.store import source_service

pytestmark = pytest.mark.soak("faults")

DOCUMENTS = 500
BEGUN = 4
"""Documents that are indexed when the server stops: fewer than the first batch, and there are many more."""
PATIENCE = 240.0
"""Seconds, on a machine that does much else."""


@dataclass(frozen=True)
class Desk:
    """A home with a folder that is to be read, and whose embedder takes its time."""

    path: Path
    embedder: EmbeddingServer
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Home:
        return Home(self.path)

    @property
    def given(self) -> dict[str, str]:
        return {
            "QUARRY_EMBEDDING_URL": self.embedder.url,
            "QUARRY_EMBEDDING_MODEL": "hash",
            "QUARRY_WORKERS": "true",
            **self.settings,
        }

    @property
    def container(self) -> KeptContainer:
        """The same home, opened here."""
        names = {name.removeprefix("QUARRY_").lower(): each for name, each in self.given.items()}
        return KeptContainer(Settings.model_validate(names | {"home": self.path / "state"}))

    def connect(self) -> None:
        (self.path / "desk").mkdir()
        self.write(range(DOCUMENTS))
        added = self.home.quarry("add", "folder", str(self.path / "desk"), **self.given)
        assert added.code == 0, added.err

    def write(self, numbers: range) -> None:
        for number in numbers:
            text = f"# Note {number}\n\nGate {number} opens at nine.\n"
            (self.path / "desk" / f"{number:04}.md").write_text(text, encoding="utf-8")

    def check(self) -> None:
        container = self.container
        with closing(container.database):
            check(container, "desk")

    @contextmanager
    def working(self, *arguments: str) -> Iterator[None]:
        """A command that goes on until it is ended."""
        with (self.path / f"{arguments[0]}.log").open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [str(QUARRY), *arguments],
                env=self.home.environment(**self.given),
                stdout=log,
                stderr=log,
            )
            try:
                yield
            finally:
                process.terminate()
                process.wait(60)


@contextmanager
def desk(path: Path, **settings: str) -> Iterator[Desk]:
    with embedding_server() as embedder:
        embedder.seconds = 1.0
        made = Desk(path, embedder, settings)
        made.connect()
        yield made


def test_the_database_stops_in_the_middle(tmp_path: Path) -> None:
    with Server(PostgreSql) as server, desk(tmp_path, QUARRY_DATABASE_URL=server.url) as made:
        with serving(made.home, **made.given) as served:
            until(lambda: source(served)["documents"] >= BEGUN)
            server.stop()
            found = served.client.get("/api/sources")
            assert found.status_code == 503
            assert "The database does not answer" in found.json()["detail"]
            assert int(found.headers["Retry-After"]) > 0
            output = made.home.quarry("sources", **made.given)
            assert output.code == 75
            words = " ".join(output.err.split())
            assert "The database does not answer" in words
            assert "check that PostgreSQL runs at the address in QUARRY_DATABASE_URL" in words
            made.embedder.seconds = 0.0
            server.start()
            until(lambda: is_done(served))
        made.check()


def test_opensearch_stops_in_the_middle(tmp_path: Path) -> None:
    with (
        OpenSearch("opensearch-2") as server,
        desk(tmp_path, QUARRY_OPENSEARCH_URL=server.node.url) as made,
    ):
        with serving(made.home, **made.given) as served:
            until(lambda: source(served)["documents"] >= BEGUN)
            server.stop()
            until(lambda: waits_for(served, "OpenSearch"))
            made.embedder.seconds = 0.0
            server.start()
            until(lambda: is_done(served))
        made.check()


def test_the_broker_stops_in_the_middle(tmp_path: Path) -> None:
    """What goes on needs no broker, and goes on; what is asked for meanwhile waits for it."""
    more = range(DOCUMENTS, DOCUMENTS + 10)
    with Server(Redis) as server, desk(tmp_path, QUARRY_BROKER_URL=server.url) as made:
        with ExitStack() as stack:
            database = stack.enter_context(closing(made.container.database))
            stack.enter_context(made.working("worker"))
            stack.enter_context(made.working("beat", "--every", "1"))
            until(lambda: status(database).documents >= BEGUN)
            server.stop()
            until(lambda: trouble(database) is not None)
            assert "The broker does not answer" in str(trouble(database))
            output = made.home.quarry("doctor", **made.given)
            words = " ".join(output.out.split())
            assert "The broker does not answer" in words
            assert "check that Redis runs at the address in QUARRY_BROKER_URL" in words
            made.embedder.seconds = 0.0
            until(lambda: status(database).documents == DOCUMENTS)
            until(lambda: status(database).state == "done")
            made.write(more)
            source_service(database).sync("desk")
            server.start()
            until(lambda: status(database).documents == more.stop)
            until(lambda: status(database).state == "done")
            until(lambda: trouble(database) is None)
        made.check()


def status(database: Database) -> SourceResponse:
    return source_service(database).status("desk")


def trouble(database: Database) -> str | None:
    """What keeps the beat from telling workers what is due."""
    found = {one.queue: one.trouble for one in workers.list_live(database)}
    return found.get("beat")


def source(served: Serving) -> dict[str, Any]:
    """As the API reports it."""
    found = served.client.get("/api/sources")
    found.raise_for_status()
    (body,) = found.json()
    assert isinstance(body, dict)
    return body


def waits_for(served: Serving, name: str) -> bool:
    """Whether the run says that it waits for this, and when it tries again; it may wait for other things meanwhile."""
    run = source(served)["run"] or {}
    return name in (run.get("waiting_for") or "") and run["next_try"] is not None


def is_done(served: Serving) -> bool:
    found = served.client.get("/api/sources")
    if found.status_code == 503:
        return False
    found.raise_for_status()
    (body,) = found.json()
    assert body["state"] not in {"failed", "needs a decision"}, body
    return bool(body["state"] == "done" and body["documents"] == DOCUMENTS)


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)
