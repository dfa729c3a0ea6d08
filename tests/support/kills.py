"""A changing folder that is kept up to date by worker processes, which are killed at random moments.

Here with all of it in one folder; `scaled_kills` has the same over PostgreSQL, Redis and OpenSearch.
"""

import json
import multiprocessing
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from backend.container import Container
from backend.store.database import Database, open_database
from backend.store.documents import batches
from backend.store.documents.ledger import StoredLedger
from backend.store.sync import runs, schedule, sources
from backend.store.sync.sources import Source
from backend.sync.due_work import Engine
from backend.sync.worker_threads import WorkerThreads
from connectors.access import Access
from connectors.connector import Connector
from connectors.document import Document
from connectors.sources.folder.connector import FolderConnector, FolderSettings
from indexing.chunking.chunker import chunk_document
from indexing.embedding.embedder import Embedder
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import IndexWriter
from indexing.ingestion.batching import BatchSize
from indexing.ingestion.executor import BatchWorker
from indexing.ingestion.ledger import Ledger
from indexing.ingestion.pipeline import Pipeline
from indexing.local import open_writer
from tests.contract.connector_worlds.held import list_documents

SOURCE = "desk"
DRAWERS = 8
EMBEDDER = HashingEmbedder()
_SIZE = BatchSize(documents=24, first=24)
_SPAWNING = multiprocessing.get_context("forkserver")
_SPAWNING.set_forkserver_preload([__name__, "tests.support.scaled_kills"])


class Kept(Protocol):
    """A home whose source is to be looked at."""

    @property
    def embedder(self) -> Embedder: ...

    @property
    def database(self) -> Database: ...

    @property
    def index_writer(self) -> IndexWriter: ...

    @property
    def ledger(self) -> Ledger: ...

    def connector(self, source: Source) -> Connector: ...


class KeptContainer(Container):
    """Implements `Kept` by the real parts of a home."""

    @property
    def embedder(self) -> Embedder:
        return self.embedding.embedder

    @property
    def index_writer(self) -> IndexWriter:
        return self.engine.writer

    @property
    def ledger(self) -> Ledger:
        return self.sources.ledger

    def connector(self, source: Source) -> Connector:
        return self.sources.connector(source)


class Site(Protocol):
    """Where a trial takes place, and who works there."""

    @property
    def files(self) -> Path:
        """The folder that is kept up to date."""
        ...

    @property
    def home(self) -> Kept: ...

    @property
    def crew(self) -> Sequence[Callable[[], BaseProcess]]:
        """How each of the processes is started, which are killed and started again."""
        ...

    @property
    def longest(self) -> float:
        """Seconds from one kill to the next, at most: those who work come to something between."""
        ...


def started(target: Callable[..., object], *arguments: object) -> BaseProcess:
    """A process that ends with this one; modules that it needs are loaded already."""
    process = _SPAWNING.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


@dataclass(frozen=True)
class Place:
    """All in one folder, but for the database, with two workers. Implements `backend.sync.due_work.Home`."""

    folder: Path
    url: str

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def home(self) -> Kept:
        return self

    @property
    def crew(self) -> Sequence[Callable[[], BaseProcess]]:
        return [partial(started, _work, Place(self.folder, self.url)) for _ in range(2)]

    @property
    def longest(self) -> float:
        return 0.8

    @property
    def embedder(self) -> Embedder:
        return EMBEDDER

    @cached_property
    def database(self) -> Database:
        return open_database(self.url)

    @cached_property
    def index_writer(self) -> IndexWriter:
        return open_writer(self.folder / "index", EMBEDDER.identity)

    @cached_property
    def ledger(self) -> Ledger:
        return StoredLedger(self.database)

    def connector(self, source: Source) -> FolderConnector:
        return FolderConnector(source.name, source.id, FolderSettings(path=self.files))

    def pipeline(self, source: Source) -> Pipeline:
        return Pipeline(source.name, EMBEDDER, self.index_writer, self.ledger, _SIZE)

    def batch_worker(self) -> BatchWorker:
        return BatchWorker(EMBEDDER, self.index_writer, self.ledger)


@dataclass(frozen=True, kw_only=True)
class Toll:
    """What was killed, and in the middle of what."""

    kills: int
    stages: Mapping[str, int]
    runs: Mapping[str, int]
    """How many ended in each state."""
    documents: int
    seconds: float


@dataclass
class Trial:
    """So many kills of one of the workers, with changes of the folder between them."""

    site: Site
    documents: int
    seed: int
    chance: random.Random = field(init=False)
    crew: Sequence[Callable[[], BaseProcess]] = ()
    workers: list[BaseProcess] = field(default_factory=list)
    stages: dict[str, int] = field(default_factory=dict)
    made: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def run(self, kills: int) -> Toll:
        """Raises AssertionError: at the end, source, ledger and index do not agree."""
        began = time.monotonic()
        with closing(self.site.home.database) as database:
            sources.add(database, SOURCE, "folder", {"path": str(self.site.files)})
            for kind in ("incremental", "permissions", "prune"):
                schedule.set_interval(database, SOURCE, kind, timedelta(seconds=1))
            for _ in range(self.documents):
                self.create()
            self.grant()
            try:
                self.crew = self.site.crew
                self.workers = [start() for start in self.crew]
                # A kill before the first run would leave nothing to continue once the schedule is off.
                _until(lambda: SOURCE in runs.latest(database))
                for _ in range(kills):
                    self.kill_one()
                self.come_to_rest()
            finally:
                for worker in self.workers:
                    worker.kill()
                    worker.join()
            check(self.site.home, SOURCE)
            ended: dict[str, int] = {}
            for run in runs.history(database, SOURCE, limit=1_000_000):
                ended[run.state] = ended.get(run.state, 0) + 1
        return Toll(
            kills=kills,
            stages=self.stages,
            runs=ended,
            documents=self.documents,
            seconds=time.monotonic() - began,
        )

    def kill_one(self) -> None:
        for _ in range(self.chance.randrange(1, 12)):
            self.change()
        time.sleep(self.chance.uniform(0.02, self.site.longest))
        number = self.chance.randrange(len(self.workers))
        latest = runs.latest(self.site.home.database).get(SOURCE)
        stage = "between runs" if latest is None or latest.state != "running" else latest.stage
        self.stages[stage] = self.stages.get(stage, 0) + 1
        self.workers[number].kill()
        self.workers[number].join()
        self.workers[number] = self.crew[number]()

    def change(self) -> None:
        steps = [self.create, self.edit, self.edit, self.delete, self.move, self.grant]
        self.chance.choice(steps)()

    def create(self) -> None:
        self.made += 1
        drawer = self.site.files / f"drawer-{self.chance.randrange(DRAWERS)}"
        drawer.mkdir(parents=True, exist_ok=True)
        self.write(drawer / f"{self.made:05}.md")

    def edit(self) -> None:
        self.write(self.chance.choice(self.files()))

    def delete(self) -> None:
        self.chance.choice(self.files()).unlink()

    def move(self) -> None:
        self.made += 1
        file = self.chance.choice(self.files())
        file.rename(file.with_name(f"{self.made:05}.md"))

    def grant(self) -> None:
        rules = [
            {
                "match": f"drawer-{number}/**",
                "readers": [self.chance.choice(["public", "group:hr", "group:it"])],
            }
            for number in range(DRAWERS)
        ]
        # JSON is YAML.
        _put(self.site.files / "access.yaml", json.dumps({"rules": rules}))

    def write(self, path: Path) -> None:
        self.made += 1
        words = " ".join(
            self.chance.choice(["leave", "pay", "travel", "gate", "code"]) for _ in range(400)
        )
        _put(path, f"# Note {self.made}\n\nIt is version {self.made}. {words}\n")

    def files(self) -> list[Path]:
        return sorted(self.site.files.rglob("*.md"))

    def come_to_rest(self) -> None:
        """Nothing changes any more: one last run of each kind, and none that is still to come."""
        database = self.site.home.database
        for kind in ("incremental", "permissions", "prune"):
            schedule.set_interval(database, SOURCE, kind, timedelta(0))
        for kind in ("incremental", "prune"):
            self.rest()
            schedule.request_run(database, SOURCE, kind)
            _until(partial(_is_answered, database, kind))
        self.rest()

    def rest(self) -> None:
        _until(lambda: _is_at_rest(self.site.home.database))


def check(place: Kept, name: str) -> None:
    """That source, ledger and index agree to the last word; no other source is there. Raises AssertionError."""
    expected = {each.id: each for each in _in_source(place, name)}
    entries = {each.id: each for each in place.ledger.scan(name, "")}
    held = {each.document_id: each for each in place.index_writer.export()}
    assert entries.keys() == expected.keys()
    assert held.keys() == expected.keys()
    for document_id, document in expected.items():
        line, entry = entries[document_id], held[document_id]
        assert place.ledger.document(document_id) == document
        assert (line.generation, line.chunks) == (entry.generation, len(entry.chunks))
        assert entry.chunks == tuple(chunk_document(document, place.embedder))
    assert {each.id for each in place.index_writer.scan()} == expected.keys()
    assert batches.count(place.database, name) == 0


def _in_source(place: Kept, name: str) -> Iterator[Document]:
    connector = place.connector(sources.find(place.database, name))
    access: dict[str, Access] = {
        each.document_id: each.access for each in list_documents(connector)
    }
    for change in connector.changes(None, lambda ids: dict.fromkeys(ids[:0], "")):
        if isinstance(change, Document):
            assert change.access == access[change.id]
            yield change


def _work(place: Place) -> None:
    """A worker process: it works until it is killed."""
    # Made once, before several threads ask for them.
    for part in ("database", "index_writer", "ledger"):
        getattr(place, part)
    WorkerThreads(Engine(lambda: place), _at_once, pause=0.05).start()
    threading.Event().wait()


def _at_once(seconds: float) -> bool:
    del seconds
    return True


def _is_at_rest(database: Database) -> bool:
    latest = runs.latest(database).get(SOURCE)
    return (
        latest is not None
        and latest.state in {"done", "failed"}
        and not batches.count(database, SOURCE)
    )


def _is_answered(database: Database, kind: str) -> bool:
    return schedule.read_plans(database, SOURCE)[SOURCE].starts[kind] is None


def _until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not happened():
        assert time.monotonic() < end, "it did not come to rest"
        time.sleep(0.05)


def _put(path: Path, text: str) -> None:
    """As an editor saves a file: whole, or as it was."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
