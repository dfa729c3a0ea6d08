"""An index writer in memory that checks every change strictly, for tests of the pipeline."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from connectors.access import NOBODY
from indexing.index.protocols import (
    Amend,
    Delete,
    IndexChange,
    IndexedDocument,
    Replace,
    SelectedDocument,
    Selection,
    Written,
)


class MemoryIndexWriter:
    """Implements `indexing.index.protocols.IndexWriter`."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.held: dict[str, Replace] = {}
        self.log: list[IndexChange] = []

    def write(self, changes: Iterable[IndexChange]) -> Written:
        batch = list(changes)
        for change in batch:
            if isinstance(change, Replace):
                self._check(change)
        written = Written()
        for change in batch:
            self.log.append(change)
            written = self._write(change, written)
        return written

    def scan(self) -> Iterator[IndexedDocument]:
        for each in sorted(self.held):
            held = self.held[each]
            access = held.chunks[0].access if held.chunks else NOBODY
            yield IndexedDocument(
                each, held.generation, len(held.chunks), held.content_hash, access
            )

    def export(self, after: str = "") -> Iterator[Replace]:
        for each in sorted(self.held):
            if each > after:
                yield self.held[each]

    def select(self, selection: Selection) -> Iterator[SelectedDocument]:
        held = [each.chunks[0] for each in self.held.values() if each.chunks]
        documents = [SelectedDocument(one.document_id, one.tags, one.sets) for one in held]
        yield from (each for each in documents if selection.accepts(each))

    def count(self, selections: Sequence[Selection]) -> int:
        return len({each.id for selection in selections for each in self.select(selection)})

    def _check(self, change: Replace) -> None:
        if change.vectors.shape != (len(change.chunks), self.dimension):
            raise ValueError(f"{change.document_id}: vectors of shape {change.vectors.shape}")
        if not np.allclose(np.linalg.norm(change.vectors, axis=1), 1, atol=1e-3):
            raise ValueError(f"{change.document_id}: a vector that is not of length 1")
        keys = [(change.document_id, position) for position in range(len(change.chunks))]
        if [chunk.key for chunk in change.chunks] != keys:
            raise ValueError(f"{change.document_id}: chunks that are not its own, or gaps")

    def _write(self, change: IndexChange, written: Written) -> Written:
        held = self.held.get(change.document_id)
        latest = change.generation if isinstance(change, Replace) else change.up_to
        if held and latest is not None and latest < held.generation:
            return replace(written, stale=(*written.stale, change.document_id))
        match change:
            case Replace():
                self.held[change.document_id] = change
                chunks = written.chunks + len(change.chunks)
                return replace(written, replaced=written.replaced + 1, chunks=chunks)
            case Delete() if held:
                del self.held[change.document_id]
                return replace(written, deleted=written.deleted + 1)
            case Amend() if held:
                amended = {
                    name: value
                    for name in ("access", "sets", "projects", "personas", "boost", "hidden")
                    if (value := getattr(change, name)) is not None
                }
                chunks_now = tuple(replace(chunk, **amended) for chunk in held.chunks)
                self.held[change.document_id] = replace(held, chunks=chunks_now)
                return replace(written, amended=written.amended + 1)
            case _:
                return replace(written, missing=(*written.missing, change.document_id))


class WatchedIndexWriter(MemoryIndexWriter):
    """Calls a test before and after each write."""

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.watch: Callable[[], None] = lambda: None

    def write(self, changes: Iterable[IndexChange]) -> Written:
        self.watch()
        written = super().write(changes)
        self.watch()
        return written
