"""An index of which only a part is searched."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from connectors.access import Readers
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.index.protocols import Facets, Filters, Found, Index, IndexQuery
from indexing.index.spelling import Corrections, SpellingQuery
from indexing.runtime.deadline import Deadline


@dataclass(frozen=True, slots=True)
class ScopedIndex:
    """Implements `Index`: each search is narrowed to a scope besides its own filters, and never widened.

    Chunks are returned of any document of the asker: they are asked of what was found.
    """

    index: Index
    scope: Filters

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        narrowed = [
            replace(query, filters=query.filters.narrowed_by(self.scope)) for query in queries
        ]
        return self.index.find(narrowed, readers, deadline)

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        return self.index.chunks(ranges, readers, deadline)

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        return self.index.facets(filters.narrowed_by(self.scope), readers, deadline)

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        return self.index.suggest_corrections(query, readers, deadline)
