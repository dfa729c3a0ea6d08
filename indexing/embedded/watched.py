"""An index and a keeper that notice when their edition is gone.

A folder that was removed can still be read by who has its files open: searched on, it would show what has
been deleted since, or to whom access was taken. So every method looks into the register, before and after.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from connectors.document import Readers
from connectors.errors import AskTheOwner, RetryLater
from indexing.chunk import Chunk, ChunkRange
from indexing.deadline import Deadline
from indexing.editions import Superseded
from indexing.embedded.keeper import EmbeddedKeeper
from indexing.embedded.reader import EmbeddedIndex
from indexing.embedded.register import parsed, read_bytes
from indexing.index import (
    Facets,
    Filters,
    Found,
    IndexChange,
    IndexedDocument,
    IndexQuery,
    Replace,
    Written,
)

_OF_A_FOLDER_THAT_GOES = (AskTheOwner, RetryLater, OSError, sqlite3.Error)


class Watch:
    """Tells, at the cost of reading one small file, whether a folder is still registered."""

    def __init__(self, home: Path, folder: str) -> None:
        self._home = home
        self._folder = folder
        self._seen = b""

    def check(self) -> None:
        """Raises Superseded: the folder is no longer that of an edition."""
        content = read_bytes(self._home)
        if content and content == self._seen:
            return
        register = parsed(self._home, content)
        if self._folder not in register.folders:
            raise Superseded(register.active.edition if register.active else None)
        self._seen = content

    @contextmanager
    def kept(self) -> Iterator[None]:
        """A block whose outcome counts only if the folder is registered all the while."""
        self.check()
        try:
            yield
        except _OF_A_FOLDER_THAT_GOES:
            self.check()
            raise
        self.check()


class WatchedIndex:
    """An `Index`; every method raises Superseded once its edition is gone."""

    def __init__(self, index: EmbeddedIndex, watch: Watch) -> None:
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
        """Give the files back; nothing may be asked of this index any more."""
        self._index.close()

    def __enter__(self) -> "WatchedIndex":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class WatchedKeeper:
    """An `IndexKeeper`; every method raises Superseded once its edition is gone.

    What a write has returned for, it has written to an edition that was not gone: the keeper looks again
    while it holds the writer's lock, which a switch takes too.
    """

    def __init__(self, keeper: EmbeddedKeeper, watch: Watch) -> None:
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
