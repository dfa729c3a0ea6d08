"""Versions of an index: one for each embedder that it is, or is about to be, searched with.

Vectors of two models cannot be compared, so a change of model needs a new version of the index. It is built
while the active version is still searched and written to, and replaces it in one step.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from connectors.access import Readers
from connectors.closing import Closing
from connectors.errors import ConflictError, NotConfiguredError, TemporarilyUnavailableError
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.embedding.embedder import EmbedderIdentity
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
from indexing.index.spelling import Corrections, SpellingQuery
from indexing.runtime.deadline import Deadline


@dataclass(frozen=True, slots=True)
class IndexVersion:
    embedder: EmbedderIdentity
    model_name: str
    """The model as configured: a path, a package, a name of a hub or an endpoint. It loads the embedder,
    which `embedder.model` may not; versions are not told apart by it."""


class IndexVersionReplacedError(TemporarilyUnavailableError):
    """The version was replaced or removed since it was opened; open the index again."""

    def __init__(self, active: IndexVersion | None) -> None:
        event = f"rebuilt with the model {active.model_name}" if active else "removed"
        super().__init__(
            f"The index was {event} since it was opened. Run the command again; a server reopens it by itself.",
            retry_after=timedelta(seconds=1),
        )
        self.active = active


class IndexVersions(Protocol):
    """All versions of one index. At most one is active, at most one is being built.

    Every method of an index or writer that is opened here raises `IndexVersionReplacedError` once its
    version is gone.
    """

    def active(self) -> IndexVersion | None:
        """Return the version that is searched; `None` before the first."""
        ...

    def building(self) -> IndexVersion | None:
        """Return the version that is being built, if any."""
        ...

    def open_index(self, index_version: IndexVersion) -> Index:
        """Open the active version for search; without one, `index_version` becomes active, empty.

        Raises:
            NotConfiguredError: the active version has another embedder (see `embedder_mismatch`).
        """
        ...

    def open_writer(self, index_version: IndexVersion) -> IndexWriter:
        """Open the active version for the pipeline. Otherwise as `open_index`."""
        ...

    def start_build(self, index_version: IndexVersion) -> IndexWriter:
        """Start to build a version, or resume its build. It may have the same embedder as the active one.

        Raises:
            ConflictError: a version for another embedder is being built.
        """
        ...

    def open_build_writer(self) -> IndexWriter | None:
        """Open the version that is being built, to see its progress; `None` where there is none."""
        ...

    def open_build_index(self) -> Index:
        """Open the version that is being built for search, to check it before it becomes active.

        Raises:
            ValueError: none is being built.
        """
        ...

    def activate(self, index_version: IndexVersion) -> None:
        """Make the version that is being built the active one, in one step, and remove the former one.

        May be repeated: where `index_version` is active already and none is being built, it only removes
        what a crash left behind.

        Raises:
            ValueError: `index_version` is neither being built nor active.
        """
        ...

    def discard_build(self) -> None:
        """Remove the version that is being built, if any."""
        ...


class VersionGuard(Protocol):
    def while_current(self) -> AbstractContextManager[None]:
        """Guard a block whose result is valid only if the version exists until its end.

        Raises:
            IndexVersionReplacedError: it does not.
        """
        ...


class ClosableIndex(Index, Protocol):
    def close(self) -> None: ...


class VersionCheckedIndex(Closing):
    """An `Index` whose methods raise IndexVersionReplacedError once its version is gone."""

    def __init__(self, index: ClosableIndex, guard: VersionGuard) -> None:
        self._index = index
        self._guard = guard

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        with self._guard.while_current():
            return self._index.find(queries, readers, deadline)

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        with self._guard.while_current():
            return self._index.chunks(ranges, readers, deadline)

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        with self._guard.while_current():
            return self._index.facets(filters, readers, deadline)

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        with self._guard.while_current():
            return self._index.suggest_corrections(query, readers, deadline)

    def close(self) -> None:
        self._index.close()


class VersionCheckedWriter:
    """An `IndexWriter` whose methods raise IndexVersionReplacedError once its version is gone."""

    def __init__(self, writer: IndexWriter, guard: VersionGuard) -> None:
        self._writer = writer
        self._guard = guard

    def write(self, changes: Iterable[IndexChange]) -> Written:
        with self._guard.while_current():
            return self._writer.write(changes)

    def scan(self) -> Iterator[IndexedDocument]:
        with self._guard.while_current():
            yield from self._writer.scan()

    def export(self, after: str = "") -> Iterator[Replace]:
        with self._guard.while_current():
            yield from self._writer.export(after)


def embedder_mismatch(active: IndexVersion, requested: IndexVersion) -> NotConfiguredError:
    """Return the error for an active version that was not made with the configured embedder."""
    return NotConfiguredError(
        f"The index was made with {describe_embedder(active.embedder)}; configured is"
        f" {describe_embedder(requested.embedder)}. Their vectors cannot be compared. To change the model"
        f" while search goes on: quarry reindex --model {requested.model_name}. To keep the former model,"
        f" set QUARRY_EMBEDDING_MODEL={active.model_name} or leave it unset."
    )


def build_in_progress(building: IndexVersion, requested: IndexVersion) -> ConflictError:
    """Return the error for a build that must end before another may start."""
    return ConflictError(
        f"An index for {describe_embedder(building.embedder)} is being built; one for"
        f" {describe_embedder(requested.embedder)} has to wait. Resume the build: quarry reindex. Or"
        " discard it: quarry reindex --abandon."
    )


def describe_embedder(identity: EmbedderIdentity) -> str:
    """Name everything that tells two embedders apart."""
    return (
        f"the model {identity.model} ({identity.version}, {identity.precision},"
        f" {identity.dimension} dimensions)"
    )
