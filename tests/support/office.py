"""All that one source runs in: database and ledger, and the embedded index of one machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from backend.store.database import Database
from backend.store.sync.sources import Source
from connectors.access import Readers
from connectors.connector import Connector
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import Index, IndexQuery, IndexWriter
from indexing.ingestion.executor import BatchWorker
from indexing.ingestion.pipeline import Pipeline
from indexing.local import open_index, open_writer
from indexing.runtime.deadline import Deadline
from tests.support.store import Store

_SOON = 60.0


@dataclass(frozen=True)
class CountingEmbedder(HashingEmbedder):
    """Records what was embedded."""

    passages: list[str] = field(default_factory=list)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.passages.extend(texts)
        return super().embed_passages(texts)


@dataclass(frozen=True)
class Office:
    """Implements `backend.sync.due_work.Home`."""

    store: Store
    folder: Path
    """Of the index."""
    connect: Callable[[], Connector]
    embedder: CountingEmbedder = field(default_factory=CountingEmbedder)

    @property
    def database(self) -> Database:
        return self.store.database

    def connector(self, source: Source) -> Connector:
        connector = self.connect()
        assert connector.source == source.name
        return connector

    def pipeline(self, source: Source) -> Pipeline:
        return Pipeline(source.name, self.embedder, self._writer(), self.store.ledger)

    def batch_worker(self) -> BatchWorker:
        return BatchWorker(self.embedder, self._writer(), self.store.ledger)

    def _writer(self) -> IndexWriter:
        return open_writer(self.folder, self.embedder.identity)

    @cached_property
    def index(self) -> Index:
        """Opened once, as a server has it open."""
        return open_index(self.folder, self.embedder.identity)

    def chunks(self, word: str, readers: Readers) -> list[Chunk]:
        """All that these find by a word that every document says: by it alone, by its vector alone, by
        both."""
        deadline = Deadline.after(_SOON)
        (vector,) = self.embedder.embed_queries([word], deadline)
        asked = [
            IndexQuery(text=word, vector=vector, alpha=alpha, size=100) for alpha in (0.0, 0.5, 1.0)
        ]
        rankings = self.index.find(asked, readers, deadline).rankings
        return [hit.chunk for ranking in rankings for hit in ranking]
