"""The words of the passages that one asker may read, looked up on the cluster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from connectors.access import Readers
from indexing.index.protocols import Filters
from indexing.index.spelling import (
    EXAMINED,
    AnyPair,
    Inflections,
    NearWord,
    PassageLookup,
    WordPrefix,
)
from indexing.opensearch import query_bodies
from indexing.opensearch.access_filter import filter_conditions, match_any
from indexing.opensearch.chunk_lookup import ChunksByPosition, Intervals
from indexing.opensearch.mapping import Body
from indexing.opensearch.naming import document_key
from indexing.opensearch.query_bodies import Interval
from indexing.opensearch.search_requests import MultiSearch


@dataclass(frozen=True, slots=True)
class OpenSearchPassageWords:
    """Implements `indexing.index.spelling.PassageWords`."""

    search: MultiSearch
    readers: Readers
    find_chunks: Callable[[Intervals], ChunksByPosition]
    """Reads chunks by the keys of their documents, and checks again that the asker may."""
    inflections: Inflections

    def find_known(self, words: Sequence[str]) -> frozenset[str]:
        readable = self._conditions
        bodies = {
            word: query_bodies.existence_query(
                query_bodies.match_inflections(word, self.inflections(word)), readable
            )
            for word in words
        }
        found = self.search.run(bodies)
        return frozenset(word for word, response in found.items() if response.total)

    def read_texts(self, lookups: Sequence[PassageLookup]) -> list[list[str]]:
        readable = self._conditions
        bodies = {
            number: query_bodies.positions_of_matches_query(
                self._condition(lookup), readable, EXAMINED
            )
            for number, lookup in enumerate(lookups)
        }
        responses = self.search.run(bodies)
        places = [query_bodies.read_places(responses[number].hits) for number in bodies]
        wanted: dict[str, list[Interval]] = {}
        for key, position in dict.fromkeys(place for some in places for place in some):
            wanted.setdefault(key, []).append((position, position + 1))
        texts = {
            (document_key(chunk.document_id), chunk.position): chunk.embedded_text
            for chunk in self.find_chunks(wanted).values()
        }
        return [[texts[place] for place in some if place in texts] for some in places]

    @property
    def _conditions(self) -> list[Body]:
        return filter_conditions(self.readers, Filters())

    def _condition(self, lookup: PassageLookup) -> Body:
        match lookup:
            case NearWord(word, distance):
                return query_bodies.near_word(word, distance)
            case WordPrefix(prefix):
                return {"prefix": {"plain": prefix}}
            case AnyPair(pairs):
                return match_any([self._match_both(*pair) for pair in pairs])

    def _match_both(self, *words: str) -> Body:
        held = [query_bodies.match_inflections(word, self.inflections(word)) for word in words]
        return {"bool": {"filter": held}}
