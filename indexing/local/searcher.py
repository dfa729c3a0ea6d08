"""What an asker may do with the local index."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from connectors.access import Readers
from connectors.closing import Closing
from connectors.errors import ActionRequiredError
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.embedding.embedder import Vector
from indexing.index import hybrid_ranking
from indexing.index.hybrid_ranking import Candidates, RankedCandidate
from indexing.index.protocols import Facets, Filters, Found, Hit, IndexQuery
from indexing.local import facets, retrieval
from indexing.local.access_filter import Scope
from indexing.local.columns import Numbers
from indexing.local.database import Connection, translate_errors
from indexing.local.row_mapping import Door, Fetched
from indexing.local.snapshot import View, Views
from indexing.local.tantivy_index import Damaged
from indexing.local.vector_file import cosines
from indexing.runtime.deadline import Deadline
from indexing.text import tokenizer

Ranking = list[RankedCandidate[int]]


class LocalIndex(Closing):
    """An `Index` over a folder. Any number of threads and processes may use it while others write."""

    def __init__(self, folder: Path, dimension: int) -> None:
        """To be had from `open_index`, which sees to it that the folder holds a whole index."""
        self._folder = folder
        self._dimension = dimension
        self._views = Views(folder, dimension)

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        """See `Index.find`.

        Raises:
            ValueError: a vector that is not of the index's dimension.
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError
        """
        for query in queries:
            if query.vector is not None and query.vector.shape != (self._dimension,):
                raise ValueError(
                    f"a vector of shape {query.vector.shape}; the index has {self._dimension} dimensions"
                )
        with self._named_errors(), self._views.current(deadline) as (view, connection):
            return _Search(view, connection, readers, deadline).found(queries)

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        """See `Index.chunks`. Raises DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError."""
        found = []
        with self._named_errors(), self._views.tables() as connection:
            door = Door(connection, readers)
            for wanted in ranges:
                deadline.check()
                start, end = max(0, wanted.start), max(0, wanted.end)
                found.append(door.part(wanted.document_id, start, end))
        return found

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        """See `Index.facets`. Raises DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError."""
        with self._named_errors(), self._views.current(deadline) as (view, connection):
            seen = view.scope(connection, readers, filters).documents
            deadline.check()
            return facets.counted(connection, view.columns, seen)

    def close(self) -> None:
        """Give the files back; nothing may be asked of this index any more."""
        self._views.close()

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            with translate_errors(self._folder):
                yield
        except (Damaged, FileNotFoundError) as error:
            raise ActionRequiredError(
                f"A file of the index in {self._folder} is missing or damaged: {error}. Start again:"
                " what can be rebuilt is rebuilt when the index is opened."
            ) from error


class _Search:
    """One call of `find`: several queries of one asker against one view."""

    def __init__(
        self, view: View, connection: Connection, readers: Readers, deadline: Deadline
    ) -> None:
        self._view = view
        self._connection = connection
        self._readers = readers
        self._deadline = deadline
        self._door = Door(connection, readers)

    def found(self, queries: Sequence[IndexQuery]) -> Found:
        scopes = {filters: self._scope(filters) for filters in {q.filters for q in queries}}
        nearest = self._nearest(queries, scopes)
        rankings = [
            self._ranking(query, scopes[query.filters], leg)
            for query, leg in zip(queries, nearest, strict=True)
        ]
        fetched = self._fetched(rankings)
        return Found(
            tuple(
                self._hits(query, ranking, fetched)
                for query, ranking in zip(queries, rankings, strict=True)
            )
        )

    def _scope(self, filters: Filters) -> Scope:
        self._deadline.check()
        return self._view.scope(self._connection, self._readers, filters)

    def _nearest(
        self, queries: Sequence[IndexQuery], scopes: Mapping[Filters, Scope]
    ) -> list[dict[int, float]]:
        """The vector leg of every query, with one scan for all that search alike."""
        found: list[dict[int, float]] = [{} for _ in queries]
        alike: dict[tuple[Filters, int], list[tuple[int, Vector]]] = {}
        for number, query in enumerate(queries):
            if query.vector is not None and query.alpha > 0.0:
                group = alike.setdefault(
                    (query.filters, hybrid_ranking.candidates_per_leg(query.size)), []
                )
                group.append((number, query.vector))
        for (filters, wanted), asked in alike.items():
            if scopes[filters].is_empty:
                continue
            self._deadline.check()
            vectors = [vector for _, vector in asked]
            rankings = retrieval.nearest(self._view, scopes[filters], vectors, wanted)
            for (number, _), ranking in zip(asked, rankings, strict=True):
                found[number] = ranking
        return found

    def _ranking(self, query: IndexQuery, seen: Scope, nearest: dict[int, float]) -> Ranking:
        if seen.is_empty:
            return []
        self._deadline.check()
        words = tokenizer.words(query.text) if query.alpha < 1.0 else []
        keyword = retrieval.keyword(
            self._view, seen, words, hybrid_ranking.candidates_per_leg(query.size)
        )
        self._deadline.check()
        exact = retrieval.exact(self._view, seen, query, self._door) if query.exact else {}
        slots = [*{**keyword, **nearest, **exact}]
        boosts = self._view.columns.boosts(_numbers(slots)).tolist()
        weights = {slot: boost for slot, boost in zip(slots, boosts, strict=True) if boost != 1.0}
        candidates = Candidates(keyword=keyword, vector=nearest, exact=exact)
        return hybrid_ranking.rank_candidates(candidates, query.alpha, query.size, weights)

    def _fetched(self, rankings: Sequence[Ranking]) -> dict[int, Fetched]:
        """By slot; what stands in several rankings is read once."""
        self._deadline.check()
        slots = sorted({place.key for ranking in rankings for place in ranking})
        rows = self._view.columns.rows(_numbers(slots)).tolist()
        found = self._door.fetch(rows)
        return {slot: found[row] for slot, row in zip(slots, rows, strict=True) if row in found}

    def _hits(
        self, query: IndexQuery, ranking: Ranking, fetched: Mapping[int, Fetched]
    ) -> tuple[Hit, ...]:
        places = [place for place in ranking if place.key in fetched]
        cosines = self._cosines(query, places)
        words = [f" {word} " for word in frozenset(tokenizer.words(query.text))]
        return tuple(
            Hit(
                fetched[place.key].chunk,
                place.score,
                place.evidence(
                    cosine, hybrid_ranking.compute_word_share(words, fetched[place.key].words)
                ),
            )
            for place, cosine in zip(places, cosines, strict=True)
        )

    def _cosines(self, query: IndexQuery, places: Ranking) -> list[float] | list[None]:
        """Of every hit, whichever leg found it, so that the evidence of hits compares."""
        if query.vector is None:
            return [None] * len(places)
        slots = _numbers([place.key for place in places])
        found: list[float] = cosines(self._view.vectors, slots, query.vector).tolist()
        return found


def _numbers(slots: Sequence[int]) -> Numbers:
    return np.array(slots, np.int64)
