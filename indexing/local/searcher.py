"""Search in the local index: the legs of each query over one snapshot, their ranking, the visible chunks."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from connectors.access import Readers
from connectors.closing import Closing
from connectors.errors import DamagedDataError
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.embedding.embedder import Vector
from indexing.index import hybrid_ranking
from indexing.index.hybrid_ranking import Candidates, ExactMatch, RankedCandidate
from indexing.index.protocols import Facets, Filters, Found, Hit, IndexQuery
from indexing.local import tantivy_index, vector_file
from indexing.local.access_filter import SearchScope
from indexing.local.columns import Numbers
from indexing.local.database import Connection, translate_errors
from indexing.local.facets import count_facets
from indexing.local.row_mapping import FetchedChunk, VisibleChunks
from indexing.local.snapshot import Snapshot, SnapshotCache
from indexing.local.tantivy_index import Condition, FulltextDamagedError, Matches
from indexing.runtime.deadline import Deadline
from indexing.text import tokenizer

EXACT_CANDIDATES = 100
"""Candidates of the exact leg whose text is read: twice as many as a query usually asks for."""

Ranking = list[RankedCandidate[int]]


class LocalIndex(Closing):
    """An `Index` over a folder. Any number of threads and processes may use it while others write."""

    def __init__(self, folder: Path, dimension: int) -> None:
        """Use `open_index`, which makes sure that the folder holds a complete index."""
        self._folder = folder
        self._dimension = dimension
        self._snapshots = SnapshotCache(folder, dimension)

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        """See `Index.find`.

        Raises:
            ValueError: a vector that does not have the index's dimension.
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError
        """
        for query in queries:
            if query.vector is not None and query.vector.shape != (self._dimension,):
                raise ValueError(
                    f"a vector of shape {query.vector.shape}; the index has {self._dimension} dimensions"
                )
        with (
            self._translate_errors(),
            self._snapshots.current(deadline) as (snapshot, connection),
        ):
            return _Search(snapshot, connection, readers, deadline).run(queries)

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        """See `Index.chunks`. Raises DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError."""
        found = []
        with self._translate_errors(), self._snapshots.tables() as connection:
            visible = VisibleChunks(connection, readers)
            for wanted in ranges:
                deadline.check()
                start, end = max(0, wanted.start), max(0, wanted.end)
                found.append(visible.range(wanted.document_id, start, end))
        return found

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        """See `Index.facets`. Raises DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError."""
        with (
            self._translate_errors(),
            self._snapshots.current(deadline) as (snapshot, connection),
        ):
            visible = snapshot.scope(connection, readers, filters).documents
            deadline.check()
            return count_facets(connection, snapshot.columns, visible)

    def close(self) -> None:
        self._snapshots.close()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            with translate_errors(self._folder):
                yield
        except (FulltextDamagedError, FileNotFoundError) as error:
            raise DamagedDataError(
                f"A file of the index in {self._folder} is missing or damaged: {error}. Start again:"
                " files that can be rebuilt are rebuilt when the index is opened."
            ) from error


class _Search:
    """One call of `find`: several queries of one asker over one snapshot. Legs identify chunks by slot."""

    def __init__(
        self, snapshot: Snapshot, connection: Connection, readers: Readers, deadline: Deadline
    ) -> None:
        self._snapshot = snapshot
        self._connection = connection
        self._readers = readers
        self._deadline = deadline
        self._visible = VisibleChunks(connection, readers)

    def run(self, queries: Sequence[IndexQuery]) -> Found:
        scopes = {filters: self._scope(filters) for filters in {q.filters for q in queries}}
        vector_legs = self._search_vectors(queries, scopes)
        rankings = [
            self._rank(query, scopes[query.filters], leg)
            for query, leg in zip(queries, vector_legs, strict=True)
        ]
        chunks = self._fetch(rankings)
        return Found(
            tuple(
                self._hits(query, ranking, chunks)
                for query, ranking in zip(queries, rankings, strict=True)
            )
        )

    def _scope(self, filters: Filters) -> SearchScope:
        self._deadline.check()
        return self._snapshot.scope(self._connection, self._readers, filters)

    def _search_vectors(
        self, queries: Sequence[IndexQuery], scopes: Mapping[Filters, SearchScope]
    ) -> list[dict[int, float]]:
        """Return the vector leg of every query, with one scan for all that have filters and size in common."""
        legs: list[dict[int, float]] = [{} for _ in queries]
        groups: dict[tuple[Filters, int], list[tuple[int, Vector]]] = {}
        for number, query in enumerate(queries):
            if query.vector is not None and query.alpha > 0.0:
                key = query.filters, hybrid_ranking.candidates_per_leg(query.size)
                groups.setdefault(key, []).append((number, query.vector))
        for (filters, count), group in groups.items():
            if scopes[filters].is_empty:
                continue
            self._deadline.check()
            vectors = np.array([vector for _, vector in group])
            found = vector_file.find_nearest(
                self._snapshot.vectors, vectors, scopes[filters].slots, count
            )
            for (number, _), (slots, scores) in zip(group, found, strict=True):
                legs[number] = dict(zip(slots.tolist(), scores.tolist(), strict=True))
        return legs

    def _rank(self, query: IndexQuery, scope: SearchScope, vector: dict[int, float]) -> Ranking:
        if scope.is_empty:
            return []
        self._deadline.check()
        words = tokenizer.words(query.text) if query.alpha < 1.0 else []
        keyword = self._search_keywords(words, scope, hybrid_ranking.candidates_per_leg(query.size))
        self._deadline.check()
        exact = self._search_exact(query, scope) if query.exact else {}
        slots = [*{**keyword, **vector, **exact}]
        boosts = self._snapshot.columns.boosts(_to_numbers(slots)).tolist()
        weights = {slot: boost for slot, boost in zip(slots, boosts, strict=True) if boost != 1.0}
        candidates = Candidates(keyword=keyword, vector=vector, exact=exact)
        return hybrid_ranking.rank_candidates(candidates, query.alpha, query.size, weights)

    def _search_keywords(
        self, words: Sequence[str], scope: SearchScope, count: int
    ) -> dict[int, float]:
        """Return the raw BM25 of the best candidates."""
        if not words:
            return {}
        found = self._match(tantivy_index.match_words(words), scope, count)
        return dict(zip(self._slots(found), found.scores.tolist(), strict=True))

    def _search_exact(self, query: IndexQuery, scope: SearchScope) -> dict[int, ExactMatch]:
        """Return how many of the query's exact terms the best candidates hold."""
        terms = [term for term in query.exact if self._is_distinctive(term)]
        if not terms:
            return {}
        phrases = [tokenizer.plain_words(term) for term in terms]
        condition = tantivy_index.match_phrases(phrases, tokenizer.words(query.text))
        found = self._match(condition, scope, max(EXACT_CANDIDATES, query.size))
        rows = found.rows.tolist()
        texts = self._visible.texts(rows)
        counts = [
            sum(tokenizer.contains_term(texts[row], term) for term in terms) if row in texts else 0
            for row in rows
        ]
        matches = zip(self._slots(found), counts, found.scores.tolist(), strict=True)
        return {slot: ExactMatch(count, score) for slot, count, score in matches if count}

    def _is_distinctive(self, term: str) -> bool:
        """Whether few enough chunks hold the term; a quoted term always counts."""
        searcher, chunks = self._snapshot.searcher, self._snapshot.state.chunks
        plain = tokenizer.plain_words(term)
        if not plain:
            return False
        if term not in tokenizer.find_exact_terms(term):
            return True  # Nothing about the term itself is code-like, so it was quoted.
        upper_bound = tantivy_index.count_rarest(searcher, tokenizer.words(term), plain)
        if not hybrid_ranking.is_too_common(upper_bound, chunks):
            return True
        return not hybrid_ranking.is_too_common(tantivy_index.count_phrase(searcher, plain), chunks)

    def _match(self, query: Condition, scope: SearchScope, count: int) -> Matches:
        """Return the best matches that the snapshot shows.

        The full-text index may hold more than that, new versions or old ones, so more are asked for if
        too few are left.
        """
        columns, limit = self._snapshot.columns, count
        while True:
            found = tantivy_index.search(self._snapshot.searcher, query, scope.conditions, limit)
            fits = columns.are_current(found.rows, found.documents)
            fits[fits] = scope.documents[found.documents[fits]]
            if len(found.rows) < limit or int(fits.sum()) >= count:
                return Matches(
                    found.rows[fits][:count],
                    found.documents[fits][:count],
                    found.scores[fits][:count],
                )
            limit *= 4

    def _slots(self, found: Matches) -> list[int]:
        slots: list[int] = self._snapshot.columns.slots(found.rows, found.documents).tolist()
        return slots

    def _fetch(self, rankings: Sequence[Ranking]) -> dict[int, FetchedChunk]:
        """Read the chunks of all rankings, by slot, each once."""
        self._deadline.check()
        slots = sorted({candidate.key for ranking in rankings for candidate in ranking})
        rows = self._snapshot.columns.rows(_to_numbers(slots)).tolist()
        found = self._visible.fetch(rows)
        return {slot: found[row] for slot, row in zip(slots, rows, strict=True) if row in found}

    def _hits(
        self, query: IndexQuery, ranking: Ranking, chunks: Mapping[int, FetchedChunk]
    ) -> tuple[Hit, ...]:
        visible = [candidate for candidate in ranking if candidate.key in chunks]
        cosines = self._cosines(query, visible)
        words = [f" {word} " for word in frozenset(tokenizer.words(query.text))]
        return tuple(
            Hit(
                chunks[candidate.key].chunk,
                candidate.score,
                candidate.evidence(
                    cosine,
                    hybrid_ranking.compute_word_share(words, chunks[candidate.key].words),
                ),
            )
            for candidate, cosine in zip(visible, cosines, strict=True)
        )

    def _cosines(self, query: IndexQuery, ranking: Ranking) -> list[float] | list[None]:
        """Return the cosine of every hit, whichever leg found it, so that their evidence is comparable."""
        if query.vector is None:
            return [None] * len(ranking)
        slots = _to_numbers([candidate.key for candidate in ranking])
        cosines: list[float] = vector_file.compute_cosines(
            self._snapshot.vectors, slots, query.vector
        ).tolist()
        return cosines


def _to_numbers(slots: Sequence[int]) -> Numbers:
    return np.array(slots, np.int64)
