"""Versions of an index: one for each embedder that it is, or is about to be, searched with.

Vectors of two models cannot be compared, so a change of model needs a new version of the index. It is built
while the active version is still searched and written to, and replaces it in one step.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from typing import Generic, Protocol, TypeVar

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
    SelectedDocument,
    Selection,
    Written,
)
from indexing.index.spelling import Corrections, SpellingQuery
from indexing.runtime.deadline import Deadline

Part = TypeVar("Part")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class IndexVersion:
    embedder: EmbedderIdentity
    model_name: str
    """The model as configured: a path, a package, a name of a hub or an endpoint. It loads the embedder,
    which `embedder.model` may not; it does not distinguish versions."""


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
    version is gone, unless another of the same embedder has replaced it: an index then answers from that, and
    a writer writes to that after one such error.
    """

    def active(self) -> IndexVersion | None:
        """Return the version that is searched; `None` before the first."""
        ...

    def building(self) -> IndexVersion | None:
        """Return the version that is being built, if any."""
        ...

    def has_current_words(self) -> bool:
        """Return whether the words of the active version were made by the analysis that a new version would use.

        True where there is none.
        """
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


def _do_nothing() -> None:
    """Do nothing, for what has nothing to close."""


@dataclass(frozen=True, slots=True)
class OpenedVersion(Generic[Part]):
    """An index or a writer of one version, and the guard of that version."""

    part: Part
    guard: VersionGuard
    close: Callable[[], None] = _do_nothing
    """Called once another version is used; calls that are under way may go on."""


class _CurrentVersion(Generic[Part]):
    """What is opened of a version; opened again once another of the same embedder has replaced it."""

    def __init__(self, open_version: Callable[[], OpenedVersion[Part]]) -> None:
        self._open_version = open_version
        self._opening = Lock()
        self.opened = open_version()

    def read(self, read: Callable[[Part], Result]) -> Result:
        """Call `read`, and again where the version was replaced meanwhile.

        Raises:
            IndexVersionReplacedError: the version was removed, or replaced by one of another embedder.
        """
        while True:
            opened = self.opened
            try:
                with opened.guard.while_current():
                    return read(opened.part)
            except IndexVersionReplacedError as error:
                self._follow(opened, error)

    @contextmanager
    def writing(self) -> Iterator[Part]:
        """Yield the writer for one change, which is lost where the version is replaced within the block.

        Raises IndexVersionReplacedError: it was; the next change goes to the version that replaced it.
        """
        opened = self.opened
        try:
            with opened.guard.while_current():
                yield opened.part
        except IndexVersionReplacedError as error:
            self._follow(opened, error)
            raise

    def _follow(self, opened: OpenedVersion[Part], error: IndexVersionReplacedError) -> None:
        with self._opening:
            if self.opened is not opened:
                return
            if error.active is None:
                # Opening it would create an empty index, which answers that there is nothing.
                raise error
            try:
                self.opened = self._open_version()
            except NotConfiguredError:
                raise error from None
            opened.close()


class VersionCheckedIndex(Closing):
    """An `Index` that answers from the current version alone.

    It follows a switch to another version of the same embedder; once its embedder's version is gone, its methods
    raise IndexVersionReplacedError.
    """

    def __init__(self, open_version: Callable[[], OpenedVersion[Index]]) -> None:
        """Prepare to read the current version.

        `open_version` raises NotConfiguredError where the current version has another embedder.
        """
        self._current = _CurrentVersion(open_version)

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        return self._current.read(lambda index: index.find(queries, readers, deadline))

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        return self._current.read(lambda index: index.chunks(ranges, readers, deadline))

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        return self._current.read(lambda index: index.facets(filters, readers, deadline))

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        return self._current.read(lambda index: index.suggest_corrections(query, readers, deadline))

    def close(self) -> None:
        self._current.opened.close()


class VersionCheckedWriter:
    """An `IndexWriter` that raises IndexVersionReplacedError where its version was replaced.

    What is written after that goes to the version that replaced it, if that has the same embedder.
    """

    def __init__(self, open_version: Callable[[], OpenedVersion[IndexWriter]]) -> None:
        """Prepare to write to the current version.

        `open_version` raises NotConfiguredError where the current version has another embedder.
        """
        self._current = _CurrentVersion(open_version)

    def write(self, changes: Iterable[IndexChange]) -> Written:
        with self._current.writing() as writer:
            return writer.write(changes)

    def scan(self) -> Iterator[IndexedDocument]:
        with self._current.writing() as writer:
            yield from writer.scan()

    def select(self, selection: Selection) -> Iterator[SelectedDocument]:
        with self._current.writing() as writer:
            yield from writer.select(selection)

    def count(self, selections: Sequence[Selection]) -> int:
        with self._current.writing() as writer:
            return writer.count(selections)

    def export(self, after: str = "") -> Iterator[Replace]:
        with self._current.writing() as writer:
            yield from writer.export(after)


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
    """Name everything that distinguishes two embedders."""
    return (
        f"the model {identity.model} ({identity.version}, {identity.precision},"
        f" {identity.dimension} dimensions)"
    )
