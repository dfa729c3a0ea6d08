"""An embedder together with the languages that it understands."""

from dataclasses import dataclass

from indexing.embedding.embedder import Embedder
from indexing.embedding.language_support import Understanding


@dataclass(frozen=True, slots=True)
class UnderstoodEmbedder:
    embedder: Embedder
    understanding: Understanding
