"""How fast a folder is indexed, against the embedder alone on the same chunks.

    .venv/bin/python -m tests.benchmarks.indexing_rate [FOLDER]

The two take turns, and the sums of their times count: a machine that is half as fast again in one
minute as in the next makes the best of each a matter of luck. FOLDER is the sample handbook if none
is named. An empty database and an empty index are made before the clock begins. The target is a ratio of at least 0.9.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from backend.sample import handbook
from backend.store.database import open_database, sqlite_url
from backend.store.documents.ledger import StoredLedger
from backend.store.sync import sources
from backend.sync.foreground_run import sync
from connectors.document import Document
from connectors.sources.folder.connector import FolderConnector, FolderSettings
from indexing.embedding.embedder import Embedder
from indexing.ingestion.pipeline import Pipeline
from indexing.ingestion.progress import Report
from indexing.local import open_writer
from tests.support.embedder_baseline import embed, texts_of
from tests.support.models import minilm

ROUNDS = 4


def documents(connector: FolderConnector) -> Iterator[Document]:
    for change in connector.changes(None, lambda ids: dict.fromkeys(ids[:0], "")):
        if isinstance(change, Document):
            yield change


def embedding_seconds(texts: Sequence[str], embedder: Embedder) -> float:
    start = time.perf_counter()
    embed(texts, embedder)
    return time.perf_counter() - start


def indexed(connector: FolderConnector, embedder: Embedder, home: Path) -> tuple[Report, float]:
    with closing(open_database(sqlite_url(home / "quarry.db"))) as database:
        source = sources.add(database, connector.source, "folder", {})
        ledger = StoredLedger(database)
        writer = open_writer(home / "index", embedder.identity)
        pipeline = Pipeline(connector.source, embedder, writer, ledger)
        start = time.perf_counter()
        *_, report = sync(database, source, connector, pipeline)
        seconds = time.perf_counter() - start
    if not isinstance(report, Report):
        raise TypeError("the last step of a sync is its report")
    return report, seconds


def indexing_seconds(connector: FolderConnector, embedder: Embedder) -> float:
    with TemporaryDirectory() as home:
        report, seconds = indexed(connector, embedder, Path(home))
    stages = ", ".join(f"{stage} {spent:.1f} s" for stage, spent in report.seconds.items())
    print(f"{report.documents} documents, {report.chunks} chunks in {seconds:.1f} s: {stages}")
    return seconds


def main(folder: Path) -> None:
    connector = FolderConnector("bench", 1, FolderSettings(path=folder))
    embedder = minilm()
    texts = texts_of(documents(connector), embedder)
    alone, whole = [], []
    for _ in range(ROUNDS):
        alone.append(embedding_seconds(texts, embedder))
        print(f"embedder alone {alone[-1]:.1f} s")
        whole.append(indexing_seconds(connector, embedder))
    rounds = ", ".join(f"{one / other:.2f}" for one, other in zip(alone, whole, strict=True))
    print(f"ratio {sum(alone) / sum(whole):.2f}; by rounds {rounds}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else handbook())
