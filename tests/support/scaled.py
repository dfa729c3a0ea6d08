"""A home whose work is done by `quarry worker` and `quarry beat`, as processes of their own over a real Redis."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from backend.container import Container
from backend.settings import Settings
from backend.store.database import Database, open_database
from backend.store.documents import batches
from backend.store.sync import runs, sources, workers
from backend.store.sync.runs import Run as StoredRun
from tests.support.home import QUARRY, Home, Run

Result = TypeVar("Result")

SOURCE = "desk"
SOON = 120.0
"""A machine that does much else at once is slow to start anything."""


@dataclass
class Scaled:
    """Its vectors come from an endpoint, so that no process loads a model."""

    folder: Path
    database_url: str
    redis_url: str
    embeddings_url: str
    still_minutes: float = 15.0
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def settings(self) -> dict[str, str]:
        return {
            "QUARRY_DATABASE_URL": self.database_url,
            "QUARRY_BROKER_URL": self.redis_url,
            "QUARRY_EMBEDDING_URL": self.embeddings_url,
            "QUARRY_EMBEDDING_MODEL": "hashing",
            "QUARRY_STILL_MINUTES": str(self.still_minutes),
        }

    @cached_property
    def container(self) -> Container:
        """The same home in this process, to look at."""
        given = {
            name.removeprefix("QUARRY_").lower(): value for name, value in self.settings.items()
        }
        return Container(Settings.model_validate({"home": self.folder / "state", **given}))

    @cached_property
    def database(self) -> Database:
        return open_database(self.database_url)

    def start(self, *arguments: str, **settings: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [str(QUARRY), *arguments],
                env=Home(self.folder).environment(**self.settings, **settings),
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def quarry_command(self, *arguments: str) -> Run:
        return Home(self.folder).quarry(*arguments, **self.settings)

    def worker(self, *arguments: str) -> subprocess.Popen[bytes]:
        return self.start("worker", *arguments)

    def beat(self) -> subprocess.Popen[bytes]:
        return self.start("beat", "--every", "0.5")

    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8")

    def add(self) -> None:
        sources.add(self.database, SOURCE, "folder", {"path": str(self.files)})

    def write(self, count: int, begin: int = 0) -> None:
        self.files.mkdir(exist_ok=True)
        for number in range(begin, begin + count):
            text = f"# Note {number}\n\nLeave, pay and travel of person {number}.\n"
            (self.files / f"{number:05}.md").write_text(text, encoding="utf-8")

    def latest(self) -> StoredRun | None:
        return runs.latest(self.database).get(SOURCE)

    def held(self) -> int:
        return self.container.sources.ledger.count(SOURCE)

    def is_done(self, documents: int) -> bool:
        """Whether so many documents are indexed, and nothing goes on."""
        latest = self.latest()
        return (
            latest is not None
            and latest.state == "done"
            and self.held() == documents
            and not batches.count(self.database, SOURCE)
        )

    def check(self, documents: int) -> None:
        """That ledger and index agree, document by document. Raises AssertionError."""
        entries = list(self.container.sources.ledger.scan(SOURCE, ""))
        assert len(entries) == documents
        assert entries == list(self.container.engine.writer.scan())

    def serving(self, queue: str) -> list[int]:
        """The processes that have said that they work on this queue."""
        present = workers.list_live(self.database)
        return [one.process.number for one in present if one.queue == queue]

    def until(self, happened: Callable[[], Result]) -> Result:
        """What it says once it says anything: asked again, it might say something else."""
        end = time.monotonic() + SOON
        while not (actual := happened()):
            assert time.monotonic() < end, self.log()[-5000:]
            time.sleep(0.05)
        return actual

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def scaled(
    folder: Path, database_url: str, redis_url: str, embeddings_url: str
) -> Iterator[Scaled]:
    """With a folder that is connected and has nothing in it; all processes end with the block."""
    site = Scaled(folder, database_url, redis_url, embeddings_url)
    with closing(site.database):
        site.write(0)
        site.add()
        try:
            yield site
        finally:
            site.close()
            if "database" in site.container.__dict__:
                site.container.database.close()


def lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True
