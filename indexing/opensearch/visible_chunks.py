"""Where chunks are read for an asker: whatever the asker may not see is not there.

A chunk counts if the record of its document comes, which it does to who may read it, and names the chunk's
version. Both are read in one search, and lie in one shard: they are of one state.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.batched import portions
from connectors.document import Readers
from indexing.chunking.chunk import Chunk
from indexing.index.protocols import Filters
from indexing.opensearch import query_bodies
from indexing.opensearch.mapping import Body
from indexing.opensearch.naming import key_of, version_of
from indexing.opensearch.query_bodies import LARGEST
from indexing.opensearch.record_mapping import Source, chunk_of
from indexing.opensearch.search_requests import Answer


@dataclass(frozen=True, slots=True)
class Shown:
    chunk: Chunk
    words: str
    """Its indexed words with a space between them."""


def passes(sets: Collection[str], filters: Filters) -> bool:
    """Of what a filter asks for only the sets of a document can change while it is found."""
    return filters.sets is None or not filters.sets.isdisjoint(sets)


def counts(chunk: str, known: Mapping[str, Source], filters: Filters) -> bool:
    """Whether the chunk of this id is one of a document that is known to come, and to pass."""
    document = known.get(key_of(chunk))
    return (
        document is not None
        and document["version"] == version_of(chunk)
        and passes(document["sets"], filters)
    )


def documents(keys: Sequence[str], readers: Readers) -> list[Body]:
    """Of searches for the records of these documents."""
    return [query_bodies.records(some, readers) for some in portions(keys, LARGEST)]


def bodies(ids: Iterable[str], readers: Readers) -> list[Body]:
    """Of searches for these chunks; a document is never divided between two."""
    found: list[Body] = []
    group: list[str] = []
    keys: list[str] = []
    for key, own in _by_key(ids).items():
        if len(group) + len(own) + len(keys) >= LARGEST:
            found.append(query_bodies.to_show(group, keys, readers))
            group, keys = [], []
        group += own
        keys.append(key)
    return [*found, query_bodies.to_show(group, keys, readers)] if group else found


def _by_key(ids: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in ids:
        found.setdefault(key_of(each), []).append(each)
    return found


def shown(answers: Iterable[Answer]) -> Iterator[tuple[str, Shown]]:
    """By chunk id, what may be shown."""
    for answer in answers:
        known = records(answer)
        for hit in answer.hits:
            source = hit["_source"]
            document = known.get(source["key"])
            if (
                document is not None
                and source["kind"] == "chunk"
                and source["version"] == document["version"]
            ):
                yield hit["_id"], Shown(chunk_of(source, document), source["words"])


def records(answer: Answer) -> dict[str, Source]:
    """The records of the documents that came, by key."""
    sources = [hit["_source"] for hit in answer.hits]
    return {source["key"]: source for source in sources if source["kind"] != "chunk"}
