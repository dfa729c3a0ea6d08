"""Who may see a chunk: which documents one asker may see through one filter.

Access is checked twice. The conditions restrict the search itself, of chunks and of records of documents
alike. A chunk that was found is shown only if the record of its document is returned as well, which it is
only to the document's readers, and names the chunk's version. Both are read by one search and lie in one
shard, so they are of one state.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.access import Readers
from connectors.batched import batched
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import DateRange, Filters
from indexing.opensearch.mapping import Body
from indexing.opensearch.naming import document_key, key_of, version_of
from indexing.opensearch.record_mapping import Source, chunk_of, to_microseconds
from indexing.opensearch.search_requests import SearchResponse
from indexing.text.normalization import is_storable

MAX_TERMS = 65_536
"""Values of one `terms` condition: `index.max_terms_count`."""


def filter_conditions(readers: Readers, filters: Filters) -> list[Body]:
    """Accept what `readers` may see and `filters` accept."""
    return [*shown_to(readers), *_filters(filters)]


def shown_to(readers: Readers) -> list[Body]:
    """Accept what the asker and everybody in the audience may see: one condition for each of them."""
    return [any_of("readers", tokens) for tokens in readers.token_sets]


def _filters(filters: Filters) -> list[Body]:
    named = {
        "source": filters.sources,
        "media_type": filters.media_types,
        "sets": filters.sets,
        "tags": filters.tags,
        "people": filters.people,
        "projects": filters.project_id_filter,
        "personas": filters.persona_id_filter,
        "key": None if filters.document_ids is None else _keys(filters.document_ids),
    }
    ranges = [_date_range("created", filters.created), _date_range("updated", filters.updated)]
    return [
        *(any_of(field, values) for field, values in named.items() if values is not None),
        *(dates for dates in ranges if dates),
        *_alternatives(filters.any_of),
    ]


def _alternatives(any_of: Iterable[Filters]) -> Iterator[Body]:
    parts: list[Body] = [{"bool": {"filter": _filters(one)}} for one in any_of]
    if parts:
        yield match_any(parts)


def _keys(ids: Iterable[str]) -> list[str]:
    return [document_key(each) for each in ids if is_storable(each)]


def any_of(field: str, values: Iterable[str]) -> Body:
    """Accept what contains one of `values`; without values, nothing. Values that cannot be stored match nothing."""
    wanted = sorted(filter(is_storable, values))
    if len(wanted) <= MAX_TERMS:
        return {"terms": {field: wanted}}
    return match_any([{"terms": {field: some}} for some in batched(wanted, MAX_TERMS)])


def none_of(field: str, values: Iterable[str]) -> Body:
    return {"bool": {"must_not": [any_of(field, values)]}}


def _date_range(field: str, dates: DateRange) -> Body:
    """Return a range condition, or an empty body without bounds."""
    bounds = {"gte": to_microseconds(dates.since), "lt": to_microseconds(dates.until)}
    bounded = {name: moment for name, moment in bounds.items() if moment is not None}
    return {"range": {field: bounded}} if bounded else {}


def match_any(parts: Sequence[Body]) -> Body:
    """Accept what one of the parts accepts."""
    return {"bool": {"should": parts, "minimum_should_match": 1}}


def readable_records(keys: Sequence[str], readers: Readers) -> Body:
    """Accept the records of those documents `keys` that `readers` may see."""
    return {
        "bool": {
            "filter": [
                {"ids": {"values": keys}},
                {"term": {"kind": "document"}},
                *shown_to(readers),
            ]
        }
    }


@dataclass(frozen=True, slots=True)
class VisibleChunk:
    chunk: Chunk
    words: str
    """Its indexed words, separated by spaces."""


@dataclass(frozen=True, slots=True)
class Memberships:
    """The filtered properties of a document that an amendment can change."""

    sets: Collection[str]
    projects: Collection[str]
    personas: Collection[str]

    @classmethod
    def of_record(cls, document: Source) -> "Memberships":
        return cls(document["sets"], document.get("projects", ()), document.get("personas", ()))

    @classmethod
    def of_chunk(cls, chunk: Chunk) -> "Memberships":
        return cls(chunk.sets, chunk.projects, chunk.personas)

    def match(self, filters: Filters) -> bool:
        checks = (
            (filters.sets, self.sets),
            (filters.project_id_filter, self.projects),
            (filters.persona_id_filter, self.personas),
        )
        return all(wanted is None or not wanted.isdisjoint(held) for wanted, held in checks) and (
            not filters.any_of or any(map(self.match, filters.any_of))
        )


def is_visible(chunk: str, records: Mapping[str, Source], filters: Filters) -> bool:
    """Return whether the records contain the document of this chunk id, in its version and matching the filters."""
    document = records.get(key_of(chunk))
    return (
        document is not None
        and document["version"] == version_of(chunk)
        and Memberships.of_record(document).match(filters)
    )


def read_visible(responses: Iterable[SearchResponse]) -> Iterator[tuple[str, VisibleChunk]]:
    """Yield the visible chunks of the responses by chunk id."""
    for response in responses:
        records = read_records(response)
        for hit in response.hits:
            source = hit["_source"]
            document = records.get(source["key"])
            if (
                document is not None
                and source["kind"] == "chunk"
                and source["version"] == document["version"]
            ):
                yield hit["_id"], VisibleChunk(chunk_of(source, document), source["words"])


def read_records(response: SearchResponse) -> dict[str, Source]:
    """Return the document records of a response, by key."""
    sources = [hit["_source"] for hit in response.hits]
    return {source["key"]: source for source in sources if source["kind"] != "chunk"}
