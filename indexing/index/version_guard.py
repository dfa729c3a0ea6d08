"""An index and a writer that notice when their index version is gone; the same for every index."""

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
    IndexQuery,
    IndexWriter,
    Replace,
    Written,
)
from indexing.runtime.deadline import Deadline


class Watch(Protocol):
    def kept(self) -> AbstractContextManager[None]:
        """A block whose outcome counts only if the index version is there all the while.

        Raises:
            IndexVersionReplacedError: it is not.
        """
        ...


class ClosableIndex(Index, Protocol):
    def close(self) -> None: ...


class VersionCheckedIndex(Closing):
    """An `Index`; every method raises IndexVersionReplacedError once its index version is gone."""

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


class VersionCheckedWriter:
    """An `IndexWriter`; every method raises IndexVersionReplacedError once its index version is gone."""

    def __init__(self, writer: IndexWriter, watch: Watch) -> None:
        self._writer = writer
        self._watch = watch

    def write(self, changes: Iterable[IndexChange]) -> Written:
        with self._watch.kept():
            return self._writer.write(changes)

    def scan(self) -> Iterator[IndexedDocument]:
        with self._watch.kept():
            yield from self._writer.scan()

    def export(self, after: str = "") -> Iterator[Replace]:
        with self._watch.kept():
            yield from self._writer.export(after)
