"""Vectors that are kept, because the same texts are embedded again."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from indexing.embedding.embedder import Embedder, Vector, Vectors
from indexing.runtime.deadline import Deadline

MOST_VECTORS = 4_096
"""Kept at once: 6 MB of a model with 384 dimensions."""


class VectorCache:
    """An embedder of queries that computes again only what was not asked for lately.

    Answers cite the same passages again, in a conversation above all. A text is known by its hash alone, so that
    nothing of a document is kept; the vectors used least recently give way. Threads may share a cache.
    """

    def __init__(self, embedder: Embedder, most: int = MOST_VECTORS) -> None:
        self._embedder = embedder
        self._most = most
        self._vectors = OrderedDict[bytes, Vector]()
        self._lock = threading.Lock()

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        """Embed as the embedder does, which raises what it raises, and keeps nothing of what it could not embed."""
        keys = [hash_text(text) for text in texts]
        found = self._find(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            vectors = self._embedder.embed_queries(list(missing.values()), deadline)
            computed = dict(zip(missing, vectors, strict=True))
            self._keep(computed)
            found |= computed
        if not keys:
            return self._embedder.embed_queries([], deadline)
        return np.stack([found[key] for key in keys])

    def _find(self, keys: Sequence[bytes]) -> dict[bytes, Vector]:
        with self._lock:
            found = {key: self._vectors[key] for key in keys if key in self._vectors}
            for key in found:
                self._vectors.move_to_end(key)
        return found

    def _keep(self, computed: dict[bytes, Vector]) -> None:
        with self._lock:
            # A copy each: a row would keep the whole array of its call in memory.
            self._vectors.update((key, vector.copy()) for key, vector in computed.items())
            while len(self._vectors) > self._most:
                self._vectors.popitem(last=False)


def hash_text(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
