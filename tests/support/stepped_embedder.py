"""An embedder that goes on only when a test has seen what it waits for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Semaphore

from indexing.embedding.embedder import Vectors
from indexing.embedding.hash_embedder import HashingEmbedder

_SECONDS = 60


@dataclass(frozen=True)
class SteppedEmbedder(HashingEmbedder):
    """Each call to embed passages waits for one `proceed`, so that progress is seen however busy the machine is."""

    permits: Semaphore = field(default_factory=lambda: Semaphore(0))

    def proceed(self) -> None:
        self.permits.release()

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if not self.permits.acquire(timeout=_SECONDS):
            raise AssertionError(f"No test called proceed() within {_SECONDS} seconds.")
        return super().embed_passages(texts)
