"""The index under the names of document sets.

In the index a document carries labels of sets, which say nothing to people. To an asker only those sets exist that are
shown to them: a filter by another finds what one by an unknown name finds, nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from connectors.access import Readers
from connectors.closing import Closing
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.index.protocols import LABEL_SIGN, Facets, Filters, Found, Hit, Index, IndexQuery
from indexing.index.spelling import Corrections, SpellingQuery
from indexing.runtime.deadline import Deadline

Names: TypeAlias = Mapping[str, str]
"""The names of sets, by label."""


@dataclass(frozen=True)
class NamedSetsIndex(Closing):
    """An `Index` whose filters, facets and chunks name sets as the asker knows them."""

    index: Index
    list_names: Callable[[Readers], Names]
    """Lists the sets that are shown to these readers."""

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        names = _AskersNames(self.list_names, readers)
        asked = [replace(each, filters=names.to_labels(each.filters)) for each in queries]
        found = self.index.find(asked, readers, deadline)
        rankings = tuple(tuple(map(names.name_hit, ranking)) for ranking in found.rankings)
        return replace(found, rankings=rankings)

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        names = _AskersNames(self.list_names, readers)
        found = self.index.chunks(ranges, readers, deadline)
        return [list(map(names.name_chunk, chunks)) for chunks in found]

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        names = _AskersNames(self.list_names, readers)
        found = self.index.facets(names.to_labels(filters), readers, deadline)
        if not found.sets:
            return found
        known = names.get()
        counts = {known[each]: count for each, count in found.sets.items() if each in known}
        return replace(found, sets=counts)

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        return self.index.suggest_corrections(query, readers, deadline)

    def close(self) -> None:
        if isinstance(self.index, Closing):
            self.index.close()


class _AskersNames:
    """The names of one asker, listed once they are needed."""

    def __init__(self, list_names: Callable[[Readers], Names], readers: Readers) -> None:
        self._list_names = list_names
        self._readers = readers
        self._names: Names | None = None

    def get(self) -> Names:
        if self._names is None:
            self._names = self._list_names(self._readers)
        return self._names

    def to_labels(self, filters: Filters) -> Filters:
        """Replace names of sets by labels; what names no set of the asker is left out, labels stay."""
        if filters.sets is None:
            return filters
        kept = {each for each in filters.sets if each.startswith(LABEL_SIGN)}
        found = {label for label, name in self.get().items() if name in filters.sets}
        return replace(filters, sets=frozenset(kept | found))

    def name_hit(self, hit: Hit) -> Hit:
        return replace(hit, chunk=self.name_chunk(hit.chunk)) if hit.chunk.sets else hit

    def name_chunk(self, chunk: Chunk) -> Chunk:
        if not chunk.sets:
            return chunk
        names = self.get()
        return replace(chunk, sets=frozenset(names[each] for each in chunk.sets if each in names))
