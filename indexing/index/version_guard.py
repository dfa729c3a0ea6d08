"""An index and a keeper that notice when their edition is gone; the same for every index."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from connectors.closing import Closing
from connectors.document import Readers
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.index.protocols import (
    Facets,
    Filters,
    Found,
    Index,
    IndexChange,
    IndexedDocument,
    IndexKeeper,
    IndexQuery,
    Replace,
    Written,
)
from indexing.runtime.deadline import Deadline


class Watch(Protocol):
    def kept(self) -> AbstractContextManager[None]:
        """A block whose outcome counts only if the edition is there all the while.

        Raises:
            Superseded: it is not.
        """
        ...


class ClosableIndex(Index, Protocol):
    def close(self) -> None: ...


class WatchedIndex(Closing):
    """An `Index`; every method raises Superseded once its edition is gone."""

    def __init__(self, index: ClosableIndex, watch: Watch) -> None:
        self._index = index
        self._watch = watch

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        with self._watch.kept():
            return self._index.find(queries, readers, deadline)

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        with self._watch.kept():
            return self._index.chunks(ranges, readers, deadline)

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        with self._watch.kept():
            return self._index.facets(filters, readers, deadline)

    def close(self) -> None:
        """Give back what it holds; nothing may be asked of this index any more."""
        self._index.close()


class WatchedKeeper:
    """An `IndexKeeper`; every method raises Superseded once its edition is gone."""

    def __init__(self, keeper: IndexKeeper, watch: Watch) -> None:
        self._keeper = keeper
        self._watch = watch

    def write(self, changes: Iterable[IndexChange]) -> Written:
        with self._watch.kept():
            return self._keeper.write(changes)

    def survey(self) -> Iterator[IndexedDocument]:
        with self._watch.kept():
            yield from self._keeper.survey()

    def export(self, after: str = "") -> Iterator[Replace]:
        with self._watch.kept():
            yield from self._keeper.export(after)
