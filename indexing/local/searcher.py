"""Search in the local index: the legs of each query over one snapshot, their ranking, the visible chunks."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from connectors.access import Readers
from connectors.closing import Closing
from connectors.errors import DamagedDataError
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.index import hybrid_ranking
from indexing.index.hybrid_ranking import Candidates, ExactMatch, RankedCandidate, Weighting
from indexing.index.protocols import (
    NO_CONDITIONS,
    Facets,
    Filters,
    Found,
    Hit,
    IndexQuery,
    TextConditions,
)
from indexing.index.spelling import Corrections, SpellingQuery, suggest_corrections
from indexing.local import tantivy_index, vector_file
from indexing.local.access_filter import Mask, Numbers, SearchScope, VisibleChunks
from indexing.local.database import Connection, FetchedChunk, translate_errors
from indexing.local.facets import count_facets
from indexing.local.snapshot import LocalPassageWords, Snapshot, SnapshotCache, find_matches
from indexing.local.tantivy_index import Condition, FulltextDamagedError, Matches
from indexing.runtime.deadline import Deadline
from indexing.text import tokenizer
from indexing.text.analysis import Analysis, QueryWord
from indexing.text.tokenizer import plain_words

EXACT_CANDIDATES = 100
"""Candidates of the exact leg whose text is read: twice as many as a query usually asks for."""

Ranking = list[RankedCandidate[int]]
_Restrictions: TypeAlias = tuple[Filters, TextConditions]


class LocalIndex(Closing):
    """An `Index` over a folder. Any number of threads and processes may use it while others write."""

    def __init__(self, folder: Path, dimension: int, analysis: Analysis) -> None:
        """Use `open_index`, which makes sure that the folder holds a complete index."""
        self._folder = folder
        self._dimension = dimension
        self._analysis = analysis
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
            return _Search(snapshot, connection, readers, deadline, self._analysis).run(queries)

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

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        """See `Index.suggest_corrections`. Raises as `facets` does."""
        with (
            self._translate_errors(),
            self._snapshots.current(deadline) as (snapshot, connection),
        ):
            scope = snapshot.scope(connection, readers, Filters())
            visible = VisibleChunks(connection, readers)
            passages = LocalPassageWords(snapshot, scope, visible, deadline, self._analysis)
            return suggest_corrections(query, passages)

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


def _restrictions(query: IndexQuery) -> _Restrictions:
    return query.filters, query.conditions


@dataclass(frozen=True, slots=True)
class _WordedQuery:
    """A query with its words in the languages that its asker may read."""

    query: IndexQuery
    words: list[QueryWord]


class _Search:
    """One call of `find`: several queries of one asker over one snapshot. Legs identify chunks by slot."""

    def __init__(
        self,
        snapshot: Snapshot,
        connection: Connection,
        readers: Readers,
        deadline: Deadline,
        analysis: Analysis,
    ) -> None:
        self._snapshot = snapshot
        self._connection = connection
        self._readers = readers
        self._deadline = deadline
        self._analysis = analysis
        self._visible = VisibleChunks(connection, readers)

    def run(self, queries: Sequence[IndexQuery]) -> Found:
        scopes = {each: self._scope(*each) for each in map(_restrictions, queries)}
        vector_legs = self._search_vectors(queries, scopes)
        worded = [self._analyze(query, scopes[_restrictions(query)]) for query in queries]
        rankings = [
            self._rank(query, scopes[_restrictions(query.query)], leg)
            for query, leg in zip(worded, vector_legs, strict=True)
        ]
        chunks = self._fetch(rankings)
        return Found(
            tuple(
                self._hits(query, ranking, chunks)
                for query, ranking in zip(worded, rankings, strict=True)
            )
        )

    def _analyze(self, query: IndexQuery, scope: SearchScope) -> _WordedQuery:
        return _WordedQuery(query, self._analysis.query_words(query.text, scope.languages))

    def _scope(self, filters: Filters, conditions: TextConditions) -> SearchScope:
        self._deadline.check()
        scope = self._snapshot.scope(self._connection, self._readers, filters)
        return scope if conditions == NO_CONDITIONS else self._narrow(scope, conditions)

    def _narrow(self, scope: SearchScope, conditions: TextConditions) -> SearchScope:
        """Leave of a scope the chunks whose text meets the conditions."""
        phrases = [words for each in conditions.required_phrases if (words := plain_words(each))]
        excluded = [words for each in conditions.excluded if (words := plain_words(each))]
        slots = scope.slots
        if phrases:
            required = tantivy_index.require_phrases(phrases)
            slots = slots & self._slots_with(required, scope)
            scope = replace(scope, conditions=(*scope.conditions, required))
        if excluded:
            slots = slots & ~self._slots_with(tantivy_index.match_any_phrase(excluded), scope)
            condition = tantivy_index.exclude_phrases(excluded)
            scope = replace(scope, conditions=(*scope.conditions, condition))
        return replace(scope, slots=slots)

    def _slots_with(self, condition: Condition, scope: SearchScope) -> Mask:
        """Return the slots of a scope whose chunks the full-text index finds by a condition."""
        found = np.zeros(len(scope.slots), np.bool_)
        chunks = max(1, self._snapshot.state.chunks)
        found[self._slots(find_matches(self._snapshot, condition, scope, chunks))] = True
        return found

    def _search_vectors(
        self, queries: Sequence[IndexQuery], scopes: Mapping[_Restrictions, SearchScope]
    ) -> list[dict[int, float]]:
        """Return the vector leg of every query, with one scan for all that have restrictions and size in common."""
        legs: list[dict[int, float]] = [{} for _ in queries]
        groups: dict[tuple[_Restrictions, int], dict[int, list[int]]] = {}
        for number, query in enumerate(queries):
            if query.vector is not None and query.alpha > 0.0:
                key = _restrictions(query), hybrid_ranking.candidates_per_leg(query.size)
                groups.setdefault(key, {}).setdefault(id(query.vector), []).append(number)
        for (restrictions, count), group in groups.items():
            scope = scopes[restrictions]
            if scope.is_empty:
                continue
            self._deadline.check()
            vectors = np.array([queries[numbers[0]].vector for numbers in group.values()])
            found = vector_file.find_nearest(self._snapshot.vectors, vectors, scope.slots, count)
            for numbers, (slots, scores) in zip(group.values(), found, strict=True):
                leg = dict(zip(slots.tolist(), scores.tolist(), strict=True))
                for number in numbers:
                    legs[number] = leg
        return legs

    def _rank(self, worded: _WordedQuery, scope: SearchScope, vector: dict[int, float]) -> Ranking:
        if scope.is_empty:
            return []
        self._deadline.check()
        query = worded.query
        words = worded.words if query.alpha < 1.0 else []
        keyword = self._search_keywords(words, scope, hybrid_ranking.candidates_per_leg(query.size))
        self._deadline.check()
        exact = self._search_exact(worded, scope) if query.exact else {}
        slots = [*{**keyword, **vector, **exact}]
        boosts = self._snapshot.columns.boosts(_to_numbers(slots)).tolist()
        boosted = {slot: boost for slot, boost in zip(slots, boosts, strict=True) if boost != 1.0}
        candidates = Candidates(keyword=keyword, vector=vector, exact=exact)
        return hybrid_ranking.rank_candidates(
            candidates, Weighting.of_query(query), query.size, boosted
        )

    def _search_keywords(
        self, words: Sequence[QueryWord], scope: SearchScope, count: int
    ) -> dict[int, float]:
        """Return the raw BM25 of the best candidates."""
        if not words:
            return {}
        found = find_matches(self._snapshot, tantivy_index.match_words(words), scope, count)
        return dict(zip(self._slots(found), found.scores.tolist(), strict=True))

    def _search_exact(self, worded: _WordedQuery, scope: SearchScope) -> dict[int, ExactMatch]:
        """Return how many of the query's exact terms the best candidates contain."""
        query = worded.query
        terms = [term for term in query.exact if self._is_distinctive(term, scope)]
        if not terms:
            return {}
        phrases = [tokenizer.plain_words(term) for term in terms]
        condition = tantivy_index.match_phrases(phrases, worded.words)
        found = find_matches(self._snapshot, condition, scope, max(EXACT_CANDIDATES, query.size))
        rows = found.rows.tolist()
        texts = self._visible.texts(rows)
        counts = [
            sum(tokenizer.contains_term(texts[row], term) for term in terms) if row in texts else 0
            for row in rows
        ]
        matches = zip(self._slots(found), counts, found.scores.tolist(), strict=True)
        return {slot: ExactMatch(count, score) for slot, count, score in matches if count}

    def _is_distinctive(self, term: str, scope: SearchScope) -> bool:
        """Return whether few enough chunks contain the term; a quoted term always counts."""
        searcher, chunks = self._snapshot.searcher, self._snapshot.state.chunks
        plain = tokenizer.plain_words(term)
        if not plain:
            return False
        if term not in tokenizer.find_exact_terms(term):
            return True  # Nothing about the term itself is code-like, so it was quoted.
        words = self._analysis.query_words(term, scope.languages)
        upper_bound = tantivy_index.count_rarest(searcher, words, plain)
        if not hybrid_ranking.is_too_common(upper_bound, chunks):
            return True
        return not hybrid_ranking.is_too_common(tantivy_index.count_phrase(searcher, plain), chunks)

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
        self, worded: _WordedQuery, ranking: Ranking, chunks: Mapping[int, FetchedChunk]
    ) -> tuple[Hit, ...]:
        visible = [candidate for candidate in ranking if candidate.key in chunks]
        cosines = self._cosines(worded.query, visible)
        words = hybrid_ranking.pad_words(worded.words)
        shares = [
            hybrid_ranking.compute_word_share(words, chunks[candidate.key].words)
            for candidate in visible
        ]
        evidence = map(RankedCandidate[int].evidence, visible, cosines, shares)
        ordered = hybrid_ranking.order_by_evidence(
            list(zip(visible, evidence, strict=True)), Weighting.of_query(worded.query)
        )
        return tuple(
            Hit(chunks[candidate.key].chunk, candidate.score, each) for candidate, each in ordered
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
