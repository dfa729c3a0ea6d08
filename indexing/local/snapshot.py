"""One consistent state of the tables, the full-text index and the vector files, for readers.

A writer first adds to the full-text index and the vector files, then flips the tables, then takes out what
the flip made old. So parts that were taken while the counter stood still belong together: they may hold
more than the tables show, which every reader passes over, but never less.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import tantivy

from connectors.access import Readers
from indexing.index.protocols import Filters
from indexing.local import columns, vector_file
from indexing.local.access_filter import Scope, scope
from indexing.local.columns import Columns
from indexing.local.database import Connection, ConnectionPool, State, read_state, read_transaction
from indexing.local.tantivy_index import Damaged, Fulltext
from indexing.local.vector_file import VectorFiles
from indexing.runtime.deadline import Deadline

SCOPES = 64


class Scopes:
    """Scopes of one view that were asked for of late; askers come back, and so do their filters."""

    def __init__(self) -> None:
        self._known: dict[tuple[Readers, Filters], Scope] = {}

    def of(
        self, connection: Connection, columns: Columns, readers: Readers, filters: Filters
    ) -> Scope:
        known = self._known.get((readers, filters))
        if known is None:
            known = scope(connection, columns, readers, filters)
            if len(self._known) >= SCOPES:
                self._known.clear()
            self._known[readers, filters] = known
        return known


@dataclass(frozen=True, slots=True)
class View:
    state: State
    searcher: tantivy.Searcher
    vectors: VectorFiles
    columns: Columns
    scopes: Scopes

    def scope(self, connection: Connection, readers: Readers, filters: Filters) -> Scope:
        """`connection` reads this view's state."""
        return self.scopes.of(connection, self.columns, readers, filters)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What outlives a change of the tables."""

    fulltext: Fulltext
    vectors: VectorFiles


class Views:
    """Keeps the newest view, and makes a new one when the counter has moved."""

    def __init__(self, folder: Path, dimension: int) -> None:
        self._folder = folder
        self._dimension = dimension
        self._pool = ConnectionPool(folder)
        self._refreshing = Lock()
        self._view: View | None = None
        self._parts: _Parts | None = None

    @contextmanager
    def current(self, deadline: Deadline) -> Iterator[tuple[View, Connection]]:
        """A view, and a connection whose reads see the same state.

        Raises:
            DeadlineExceededError: no state stood still long enough to be seen whole.
            Damaged, FileNotFoundError: a file is missing.
        """
        with self._pool.connection() as connection:
            while True:
                deadline.check()
                with read_transaction(connection):
                    view = self._view_of(connection)
                    if view is not None:
                        yield view, connection
                        return

    @contextmanager
    def tables(self) -> Iterator[Connection]:
        """A connection within one state of the tables, for what needs no more."""
        with self._pool.connection() as connection, read_transaction(connection):
            yield connection

    def close(self) -> None:
        self._pool.close()

    def _view_of(self, connection: Connection) -> View | None:
        """A view of the connection's snapshot; none if a writer got ahead of it meanwhile."""
        state = read_state(connection)
        view = self._view
        if view is not None and view.state.counter == state.counter:
            return view
        with self._refreshing:
            view = self._view
            if view is None or view.state.counter < state.counter:
                return self._refreshed(connection, state)
            return view if view.state.counter == state.counter else None

    def _refreshed(self, connection: Connection, state: State) -> View | None:
        try:
            view = self._taken(connection, state)
        except (Damaged, FileNotFoundError):
            # Files of an epoch that has ended meanwhile are gone for good reason.
            if self._is_newest(state):
                raise
            return None
        if not self._is_newest(state):
            return None
        self._view = view
        return view

    def _is_newest(self, state: State) -> bool:
        with self._pool.connection() as fresh:
            return read_state(fresh).counter == state.counter

    def _taken(self, connection: Connection, state: State) -> View:
        former = self._view.columns if self._view else None
        parts = self._parts = _Parts(self._fulltext(state), self._vectors(state))
        return View(
            state,
            parts.fulltext.searcher(),
            parts.vectors.first(state.slots),
            columns.loaded(connection, state, former),
            Scopes(),
        )

    def _fulltext(self, state: State) -> Fulltext:
        if self._parts and self._parts.fulltext.epoch == state.fulltext_epoch:
            return self._parts.fulltext
        return Fulltext(self._folder, state.fulltext_epoch)

    def _vectors(self, state: State) -> VectorFiles:
        if state.slots == 0:
            return vector_file.none(state.vector_epoch, self._dimension)
        if self._parts:
            known = self._parts.vectors
            if known.epoch == state.vector_epoch and known.capacity >= state.slots:
                return known
        return vector_file.mapped(self._folder, state.vector_epoch, self._dimension)
