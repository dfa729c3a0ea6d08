"""From what the legs of one call led to, to the hits of every query."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from connectors.document import Readers
from indexing.index import hybrid_ranking
from indexing.index.hybrid_ranking import Candidates, RankedCandidate
from indexing.index.protocols import Found, Hit
from indexing.opensearch import query_bodies, visible_chunks
from indexing.opensearch.mapping import Body
from indexing.opensearch.naming import key_of, version_of
from indexing.opensearch.query_bodies import LARGEST
from indexing.opensearch.record_mapping import Source
from indexing.opensearch.retrieval import Asked, Leads, Legs
from indexing.opensearch.search_requests import Searches
from indexing.opensearch.visible_chunks import Shown

Ranking: TypeAlias = list[RankedCandidate[str]]


class View:
    """One call of `find`: several queries of one asker, answered by `searches`."""

    def __init__(self, legs: Legs, readers: Readers, searches: Searches) -> None:
        self._legs = legs
        self._readers = readers
        self._searches = searches
        self._shown: dict[str, Shown] = {}
        self._cosines: list[dict[str, float]] = [{} for _ in legs.asked]
        """Of each query, by chunk id: those that its legs did not tell."""
        self._partial = False

    def found_if_whole(self) -> Found | None:
        """The best of every ranking; none if something among them does not count, or not any more."""
        rankings = self._rankings(self._led())
        self._read_all(rankings)
        whole = all(
            self._passes(asked, place)
            for asked, ranking in zip(self._legs.asked, rankings, strict=True)
            for place in ranking
        )
        # What is partial is not made whole by another look.
        return self._found(rankings) if whole or self._partial else None

    def found(self) -> Found:
        """The best of every ranking that count; `searches` must see one state of the index.

        A document that is being replaced may have very many chunks that do not count; they are not to
        take the place of others among the candidates, so the legs are asked again without them.
        """
        leads = self._led()
        while any(others := self._not_counting(leads)):
            self._legs = self._legs.without(others, leads.common)
            leads = self._led()
        rankings = self._rankings(leads)
        self._read_all(rankings)
        return self._found(rankings)

    def _led(self) -> Leads:
        leads = self._legs.leads(self._searches)
        self._partial |= leads.partial
        return leads

    def _rankings(self, leads: Leads) -> list[Ranking]:
        return [
            hybrid_ranking.rank_candidates(
                found, asked.query.alpha, min(asked.query.size, LARGEST), leads.boosts
            )
            for found, asked in zip(leads.candidates, self._legs.asked, strict=True)
        ]

    def _not_counting(self, leads: Leads) -> list[set[str]]:
        """For each query the versions among its candidates that do not count."""
        keys = sorted({key_of(chunk) for found in leads.candidates for chunk in _all(found)})
        bodies = dict(enumerate(visible_chunks.documents(keys, self._readers)))
        known: dict[str, Source] = {}
        for answer in self._searches.ask(bodies).values():
            known |= visible_chunks.records(answer)
            self._partial |= answer.partial
        return [
            {
                version_of(chunk)
                for chunk in _all(found)
                if not visible_chunks.counts(chunk, known, asked.query.filters)
            }
            for found, asked in zip(leads.candidates, self._legs.asked, strict=True)
        ]

    def _passes(self, asked: Asked, place: RankedCandidate[str]) -> bool:
        shown = self._shown.get(place.key)
        return shown is not None and visible_chunks.passes(shown.chunk.sets, asked.query.filters)

    def _read_all(self, rankings: Sequence[Ranking]) -> None:
        """Chunks with their documents, and the cosines that no leg told, in one request."""
        wanted = sorted({place.key for ranking in rankings for place in ranking})
        asked = {
            ("door", n): body for n, body in enumerate(visible_chunks.bodies(wanted, self._readers))
        }
        asked |= {("cosines", n): body for n, body in self._to_measure(rankings)}
        answers = self._searches.ask(asked)
        self._shown.update(
            visible_chunks.shown(a for (kind, _), a in answers.items() if kind == "door")
        )
        for (kind, number), answer in answers.items():
            self._partial |= answer.partial
            if kind == "cosines":
                self._cosines[number].update(self._legs.cosines(answer))

    def _to_measure(self, rankings: Sequence[Ranking]) -> Iterator[tuple[int, Body]]:
        """Every hit tells its cosine, whichever leg found it, so that the evidence of hits compares."""
        for number, (asked, ranking) in enumerate(zip(self._legs.asked, rankings, strict=True)):
            ids = [place.key for place in ranking if place.cosine is None]
            if asked.vector is not None and ids:
                yield number, query_bodies.cosines(ids, asked.vector)

    def _found(self, rankings: Sequence[Ranking]) -> Found:
        hits = [tuple(self._hits(number, ranking)) for number, ranking in enumerate(rankings)]
        return Found(tuple(hits), self._partial)

    def _hits(self, number: int, ranking: Ranking) -> Iterator[Hit]:
        asked, cosines = self._legs.asked[number], self._cosines[number]
        words = [f" {word} " for word in frozenset(asked.words)]
        for place in ranking:
            if self._passes(asked, place):
                shown = self._shown[place.key]
                share = hybrid_ranking.compute_word_share(words, shown.words)
                evidence = place.evidence(cosines.get(place.key), share)
                yield Hit(shown.chunk, place.score, evidence)


def _all(found: Candidates[str]) -> Iterator[str]:
    """The chunks that any leg found; some more than once."""
    return chain(found.keyword, found.vector, found.exact)
