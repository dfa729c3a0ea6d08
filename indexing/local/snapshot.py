"""A consistent snapshot of the tables, the full-text index and the vector files, for readers.

A writer first adds to the full-text index and the vector files, then commits to the tables, then removes what
the commit made obsolete. So parts that were opened while the counter did not change belong together: they may
hold more than the tables show, which every search filters out, but never less.

`LocalPassageWords` looks words up in the passages of a snapshot that one asker may read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from threading import Lock

import tantivy

from connectors.access import Readers
from indexing.index.protocols import Filters
from indexing.index.spelling import EXAMINED, AnyPair, NearWord, PassageLookup, WordPrefix
from indexing.local import tantivy_index, vector_file
from indexing.local.access_filter import (
    Columns,
    Mask,
    Numbers,
    ScopeCache,
    SearchScope,
    VisibleChunks,
    load_columns,
)
from indexing.local.database import Connection, ConnectionPool, State, read_state, read_transaction
from indexing.local.tantivy_index import (
    Condition,
    FulltextDamagedError,
    FulltextIndex,
    Matches,
)
from indexing.local.vector_file import VectorFiles
from indexing.runtime.deadline import Deadline
from indexing.text.analysis import Analysis

FIRST_MATCHES = 2
"""Chunks with a word that are looked at before all that an asker may see are searched for it."""

MAX_KNOWN_WORDS = 10_000
"""Words that are remembered of a scope."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    state: State
    searcher: tantivy.Searcher
    vectors: VectorFiles
    columns: Columns
    scopes: ScopeCache

    def scope(self, connection: Connection, readers: Readers, filters: Filters) -> SearchScope:
        """Return the scope of an asker; `connection` reads this snapshot's state."""
        return self.scopes.get(connection, self.columns, readers, filters)


def find_matches(snapshot: Snapshot, query: Condition, scope: SearchScope, count: int) -> Matches:
    """Return the best matches of a full-text query that the snapshot shows within a scope.

    The full-text index may hold more than that, new versions or old ones, so more are asked for if
    too few are left.
    """
    columns, limit = snapshot.columns, count
    while True:
        found = tantivy_index.search(snapshot.searcher, query, scope.conditions, limit)
        fits = are_shown(columns, scope, found.rows, found.documents)
        if len(found.rows) < limit or int(fits.sum()) >= count:
            return Matches(
                found.rows[fits][:count],
                found.documents[fits][:count],
                found.scores[fits][:count],
            )
        limit *= 4


def are_shown(columns: Columns, scope: SearchScope, rows: Numbers, documents: Numbers) -> Mask:
    """Return which of these chunks a snapshot shows within a scope."""
    return columns.are_current(rows, documents, scope.documents)


@dataclass(frozen=True, slots=True)
class _OpenFiles:
    """Files that stay open when the tables change."""

    fulltext: FulltextIndex
    vectors: VectorFiles


class SnapshotCache:
    """Keeps the newest snapshot, and takes a new one when the counter has changed."""

    def __init__(self, folder: Path, dimension: int) -> None:
        self._folder = folder
        self._dimension = dimension
        self._pool = ConnectionPool(folder)
        self._refreshing = Lock()
        self._snapshot: Snapshot | None = None
        self._files: _OpenFiles | None = None

    @contextmanager
    def current(self, deadline: Deadline) -> Iterator[tuple[Snapshot, Connection]]:
        """Yield a snapshot, and a connection whose reads see the same state.

        Raises:
            DeadlineExceededError: writers changed the state faster than it could be read.
            FulltextDamagedError, FileNotFoundError: a file is missing.
        """
        with self._pool.connection() as connection:
            while True:
                deadline.check()
                with read_transaction(connection):
                    current = self._snapshot_of(connection)
                    if current is not None:
                        yield current, connection
                        return

    @contextmanager
    def tables(self) -> Iterator[Connection]:
        """Yield a connection that reads one state of the tables, for callers that need nothing else."""
        with self._pool.connection() as connection, read_transaction(connection):
            yield connection

    def close(self) -> None:
        self._pool.close()

    def _snapshot_of(self, connection: Connection) -> Snapshot | None:
        """Return a snapshot of the state that the connection reads; none if a writer has changed it meanwhile."""
        state = read_state(connection)
        current = self._snapshot
        if current is not None and current.state.counter == state.counter:
            return current
        with self._refreshing:
            current = self._snapshot
            if current is None or current.state.counter < state.counter:
                return self._refresh(connection, state)
            return current if current.state.counter == state.counter else None

    def _refresh(self, connection: Connection, state: State) -> Snapshot | None:
        try:
            taken = self._take(connection, state)
        except (FulltextDamagedError, FileNotFoundError):
            # Files of an epoch that has ended meanwhile were removed on purpose.
            if self._is_newest(state):
                raise
            return None
        if not self._is_newest(state):
            return None
        self._snapshot = taken
        return taken

    def _is_newest(self, state: State) -> bool:
        with self._pool.connection() as fresh:
            return read_state(fresh).counter == state.counter

    def _take(self, connection: Connection, state: State) -> Snapshot:
        former = self._snapshot.columns if self._snapshot else None
        files = self._files = _OpenFiles(self._open_fulltext(state), self._map_vectors(state))
        return Snapshot(
            state,
            files.fulltext.searcher(),
            files.vectors.first(state.slots),
            load_columns(connection, state, former),
            ScopeCache(),
        )

    def _open_fulltext(self, state: State) -> FulltextIndex:
        if self._files and self._files.fulltext.epoch == state.fulltext_epoch:
            return self._files.fulltext
        return FulltextIndex(self._folder, state.fulltext_epoch)

    def _map_vectors(self, state: State) -> VectorFiles:
        if state.slots == 0:
            return vector_file.empty(state.vector_epoch, self._dimension)
        if self._files:
            mapped = self._files.vectors
            if mapped.epoch == state.vector_epoch and mapped.capacity >= state.slots:
                return mapped
        return vector_file.map_files(self._folder, state.vector_epoch, self._dimension)


@dataclass(frozen=True, slots=True)
class LocalPassageWords:
    """Implements `indexing.index.spelling.PassageWords`."""

    snapshot: Snapshot
    scope: SearchScope
    visible: VisibleChunks
    deadline: Deadline
    analysis: Analysis

    def inflections(self, word: str) -> list[str]:
        words = self.analysis.query_words(word, self.scope.languages)
        return [form for forms in words for form in forms]

    def find_known(self, words: Sequence[str]) -> frozenset[str]:
        remembered = self.scope.known_words
        known = remembered.intersection(words)
        if new := [word for word in words if word not in known]:
            found = self._find_known(new)
            if len(remembered) > MAX_KNOWN_WORDS:
                remembered.clear()
            remembered.update(found)
            known |= found
        return frozenset(known)

    def _find_known(self, words: Sequence[str]) -> frozenset[str]:
        self.deadline.check()
        known = self._find_shown({word: [tantivy_index.match_phrase([word])] for word in words})
        held = self._find_held([word for word in words if word not in known])
        return known | self._find_inflected(held) if held else known

    def _find_held(self, words: Sequence[str]) -> dict[str, Sequence[str]]:
        """Return the stems of those words that any chunk contains, whoever may see it; few unknown words are left."""
        stems = {word: self.inflections(word) for word in words}
        searcher = self.snapshot.searcher
        return {
            word: of_word
            for word, of_word in stems.items()
            if tantivy_index.is_held(searcher, word, of_word)
        }

    def _find_inflected(self, stems: Mapping[str, Sequence[str]]) -> frozenset[str]:
        known = self._find_shown(
            {word: [*map(tantivy_index.match_word, of_word)] for word, of_word in stems.items()}
        )
        rest = {word: of_word for word, of_word in stems.items() if word not in known}
        return known.union(word for word, of_word in rest.items() if self._is_known(word, of_word))

    def _find_shown(self, terms: Mapping[str, Sequence[Condition]]) -> frozenset[str]:
        """Return the words of which the first chunks that the index finds are shown in this scope."""
        found = tantivy_index.find_first(self.snapshot.searcher, terms, FIRST_MATCHES)
        if not found.words:
            return frozenset()
        shown = are_shown(self.snapshot.columns, self.scope, found.rows, found.documents).tolist()
        return frozenset(compress(found.words, shown))

    def _is_known(self, word: str, stems: Sequence[str]) -> bool:
        self.deadline.check()
        condition = tantivy_index.match_inflections(word, stems)
        return len(find_matches(self.snapshot, condition, self.scope, 1).rows) > 0

    def read_texts(self, lookups: Sequence[PassageLookup]) -> list[list[str]]:
        return [self._read_texts(lookup) for lookup in lookups]

    def _read_texts(self, lookup: PassageLookup) -> list[str]:
        self.deadline.check()
        condition = self._condition(lookup)
        # The first that the index finds take less time than the first that the asker may see, and are mostly the same.
        found = tantivy_index.search(self.snapshot.searcher, condition, (), EXAMINED)
        rows = found.rows[are_shown(self.snapshot.columns, self.scope, found.rows, found.documents)]
        if len(found.rows) == EXAMINED > len(rows):
            rows = find_matches(self.snapshot, condition, self.scope, EXAMINED).rows
        return [*self.visible.texts(rows.tolist()).values()]

    def _condition(self, lookup: PassageLookup) -> Condition:
        match lookup:
            case NearWord(word, distance):
                return tantivy_index.match_near_word(word, distance)
            case WordPrefix(prefix):
                return tantivy_index.match_prefix(prefix)
            case AnyPair(pairs):
                return tantivy_index.match_any([self._match_both(*pair) for pair in pairs])

    def _match_both(self, *words: str) -> Condition:
        held = [tantivy_index.match_inflections(word, self.inflections(word)) for word in words]
        return tantivy_index.match_all(held)
