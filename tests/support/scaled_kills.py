"""The trial of `kills` with servers: PostgreSQL, OpenSearch and Redis, and two of each kind of worker.

Vectors come from an endpoint of this process. Every process of the crew is killed as `quarry worker` or
`quarry beat` would be by a machine that dies; each is started again as a service manager would.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from uuid import uuid4

import opensearchpy

from backend.settings import Settings
from backend.sync.wakeup_messages import QUEUES, Queue
from backend.worker.celery_worker import run_beat, run_worker
from backend.worker.process import WorkerConfig, start_logging
from tests.support.databases import Redis, Server
from tests.support.embedding_server import embedding_server
from tests.support.kills import KeptContainer, started

WORKERS = 2
LONGEST = 3.0
"""A worker of several processes takes longer to come to something than a thread does."""


@dataclass(frozen=True)
class ScaledPlace:
    """Implements `tests.support.kills.Site`."""

    folder: Path
    settings: Mapping[str, str]

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @cached_property
    def home(self) -> KeptContainer:
        names = {name.removeprefix("QUARRY_").lower(): each for name, each in self.settings.items()}
        return KeptContainer(Settings.model_validate(names))

    @property
    def crew(self) -> Sequence[Callable[[], BaseProcess]]:
        """The index is made before, so that all open the same."""
        self.home.index_writer.write([])
        workers = [
            partial(started, _worker, self.folder, self.settings, queue)
            for queue in QUEUES
            for _ in range(WORKERS)
        ]
        return [*workers, partial(started, _beat, self.folder, self.settings)]

    @property
    def longest(self) -> float:
        return LONGEST


@contextmanager
def scaled_place(folder: Path, database_url: str, opensearch_url: str) -> Iterator[ScaledPlace]:
    """With a Redis of its own: workers of another home would take its messages. Its indexes are gone afterwards."""
    (folder / "files").mkdir()
    prefix = f"kills-{uuid4().hex[:8]}"
    with Server(Redis) as redis, embedding_server() as embedder:
        settings = {
            "QUARRY_HOME": str(folder / "state"),
            "QUARRY_DATABASE_URL": database_url,
            "QUARRY_BROKER_URL": redis.url,
            "QUARRY_OPENSEARCH_URL": opensearch_url,
            "QUARRY_OPENSEARCH_PREFIX": prefix,
            "QUARRY_EMBEDDING_URL": embedder.url,
            "QUARRY_EMBEDDING_MODEL": "hash",
        }
        yield ScaledPlace(folder, settings)
    with opensearchpy.OpenSearch(opensearch_url) as client:
        client.indices.delete(index=f"{prefix}-*")


def _worker(folder: Path, settings: Mapping[str, str], queue: Queue) -> None:
    _given(folder, settings)
    run_worker(WorkerConfig(queue=queue, concurrency=2 if queue == "fetch" else 1))


def _beat(folder: Path, settings: Mapping[str, str]) -> None:
    _given(folder, settings)
    start_logging()
    run_beat(Settings(), threading.Event(), every=0.25)


def _given(folder: Path, settings: Mapping[str, str]) -> None:
    """What a service manager gives: the environment, and a file for what is logged."""
    os.environ.update(settings)
    descriptor = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(descriptor, 2)
    os.close(descriptor)
