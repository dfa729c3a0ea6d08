"""From what the legs of one call led to, to the hits of every query."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from connectors.document import Readers
from indexing import hybrid
from indexing.hybrid import Placed
from indexing.index import Found, Hit
from indexing.opensearch import door, queries, scores
from indexing.opensearch.door import Shown
from indexing.opensearch.legs import Asked, Leads, Legs
from indexing.opensearch.mapping import Body
from indexing.opensearch.queries import LARGEST
from indexing.opensearch.searches import Searches

Ranking = list[Placed[str]]


class View:
    """One call of `find`: several queries of one asker, answered by `searches`."""

    def __init__(self, legs: Legs, readers: Readers, searches: Searches) -> None:
        self._legs = legs
        self._readers = readers
        self._searches = searches
        self._shown: dict[str, Shown] = {}
        self._read: set[str] = set()
        self._cosines: list[dict[str, float]] = [{} for _ in legs.asked]
        """Of each query, by chunk id: those that its legs did not tell."""
        self._partial = False

    def found_if_whole(self) -> Found | None:
        """The best of every ranking; none if something among them does not count, or not any more."""
        leads = self._led()
        rankings = [
            self._ranking(leads, number, asked.query.size)
            for number, asked in enumerate(self._legs.asked)
        ]
        self._read_all(rankings)
        whole = all(
            self._passes(asked, place)
            for asked, ranking in zip(self._legs.asked, rankings, strict=True)
            for place in ranking
        )
        # What is partial is not made whole by another look.
        return self._found(rankings) if whole or self._partial else None

    def found(self) -> Found:
        """The best of every ranking that count; `searches` must see one state of the index."""
        leads = self._led()
        rankings = [
            self._ranking(leads, number, LARGEST) for number in range(len(self._legs.asked))
        ]
        while True:
            best = [self._best(*pair) for pair in zip(self._legs.asked, rankings, strict=True)]
            if all(place.key in self._read for ranking in best for place in ranking):
                return self._found(best)
            self._read_all(best)

    def _led(self) -> Leads:
        leads = self._legs.leads(self._searches)
        self._partial |= leads.partial
        return leads

    def _ranking(self, leads: Leads, number: int, size: int) -> Ranking:
        alpha = self._legs.asked[number].query.alpha
        return hybrid.ranked(
            leads.candidates[number], alpha, min(size, LARGEST), leads.boosts.__getitem__
        )

    def _best(self, asked: Asked, ranking: Ranking) -> Ranking:
        """As many as are asked for, without those that are known not to count."""
        left = [
            place for place in ranking if place.key not in self._read or self._passes(asked, place)
        ]
        return left[: asked.query.size]

    def _passes(self, asked: Asked, place: Placed[str]) -> bool:
        shown = self._shown.get(place.key)
        return shown is not None and shown.passes(asked.query.filters)

    def _read_all(self, rankings: Sequence[Ranking]) -> None:
        """Chunks with their documents, and the cosines that no leg told, in one request."""
        wanted = {place.key for ranking in rankings for place in ranking} - self._read
        asked = {("door", n): body for n, body in enumerate(self._at_door(wanted))}
        asked |= {("cosines", n): body for n, body in self._to_measure(rankings)}
        answers = self._searches.ask(asked)
        self._read |= wanted
        self._shown.update(door.shown(a for (kind, _), a in answers.items() if kind == "door"))
        for (kind, number), answer in answers.items():
            self._partial |= answer.partial
            if kind == "cosines":
                self._cosines[number].update(self._legs.cosines(answer))

    def _at_door(self, wanted: set[str]) -> list[Body]:
        return door.bodies(sorted(wanted), self._readers)

    def _to_measure(self, rankings: Sequence[Ranking]) -> Iterator[tuple[int, Body]]:
        """Every hit tells its cosine, whichever leg found it, so that the evidence of hits compares."""
        for number, (asked, ranking) in enumerate(zip(self._legs.asked, rankings, strict=True)):
            known = self._cosines[number]
            ids = [p.key for p in ranking if p.evidence.cosine is None and p.key not in known]
            if asked.vector is not None and ids:
                yield number, queries.cosines(ids, asked.vector)

    def _found(self, rankings: Sequence[Ranking]) -> Found:
        hits = [tuple(self._hits(number, ranking)) for number, ranking in enumerate(rankings)]
        return Found(tuple(hits), self._partial)

    def _hits(self, number: int, ranking: Ranking) -> Iterator[Hit]:
        asked, cosines = self._legs.asked[number], self._cosines[number]
        words = [f" {word} " for word in frozenset(asked.words)]
        for place in ranking:
            if self._passes(asked, place):
                shown, evidence = self._shown[place.key], place.evidence
                cosine = cosines.get(place.key) if evidence.cosine is None else evidence.cosine
                share = scores.word_share(words, shown.words)
                yield Hit(
                    shown.chunk, place.score, replace(evidence, cosine=cosine, word_share=share)
                )
