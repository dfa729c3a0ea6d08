"""All that an index holds, by document id, a little at a time: for repair, audit and moving."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from opensearchpy import OpenSearch

from connectors.batched import portions
from connectors.document import NOBODY
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Vectors
from indexing.index.protocols import IndexedDocument, Replace
from indexing.opensearch import errors
from indexing.opensearch.document_records import Documents
from indexing.opensearch.naming import chunk_id
from indexing.opensearch.record_mapping import (
    DocumentRecord,
    Source,
    chunk_of,
    document_record,
    document_source,
)

PAGE = 1_000
"""Documents of one request."""
CHUNKS = 200
"""Chunks of one request, with their vectors: about a megabyte or two."""
WHOLE = {"allow_partial_search_results": "false"}
"""What a missing shard holds is not to be taken for deleted; in its counts of shards an answer calls none failed."""
ATTEMPTS = 20
"""At a document that is replaced while it is read."""


def scan(client: OpenSearch, index: str, after: str = "") -> Iterator[DocumentRecord]:
    """Every document whose id follows `after`, by id, as its page was when it was read."""
    while True:
        body = {
            "query": {"term": {"kind": "document"}},
            "sort": [{"id": "asc"}],
            "search_after": [after],
            "size": PAGE,
            "track_total_hits": False,
        }
        with errors.named_errors():
            answer = client.search(body=body, index=index, params=WHOLE)
        found = [document_record(hit["_source"]) for hit in answer["hits"]["hits"]]
        if not found:
            return
        yield from found
        after = found[-1].id


def known(record: DocumentRecord) -> IndexedDocument:
    return IndexedDocument(
        record.id,
        record.generation,
        record.version.chunks,
        record.content_hash,
        record.access if record.version.chunks else NOBODY,
    )


class Export:
    """Documents with their chunks and vectors; several small ones in one request."""

    def __init__(
        self, client: OpenSearch, index: str, documents: Documents, dimension: int
    ) -> None:
        self._client = client
        self._index = index
        self._documents = documents
        self._dimension = dimension

    def after(self, document_id: str) -> Iterator[Replace]:
        group: list[DocumentRecord] = []
        chunks = 0
        for record in scan(self._client, self._index, document_id):
            if group and chunks + record.version.chunks > CHUNKS:
                yield from self._whole(group)
                group, chunks = [], 0
            group.append(record)
            chunks += record.version.chunks
        yield from self._whole(group)

    def _whole(self, group: Sequence[DocumentRecord]) -> Iterator[Replace]:
        with errors.named_errors():
            sources = self._sources(
                (record.key, chunk_id(record.key, record.version.name, position))
                for record in group
                for position in range(record.version.chunks)
            )
        for record in group:
            own = [sources.pop(name, None) for name in _names(record)]
            yield from self._one(record, [source for source in own if source])

    def _one(self, record: DocumentRecord, sources: list[Source]) -> Iterator[Replace]:
        """A document that was replaced meanwhile is read again; one that was deleted is left out."""
        for _ in range(ATTEMPTS):
            if len(sources) == record.version.chunks:
                yield self._replace(record, sources)
                return
            with errors.named_errors():
                held = self._documents.read([record.id]).get(record.id)
                if held is None or held.record.state != "document":
                    return
                record = held.record
                found = self._sources((record.key, name) for name in _names(record))
            sources = [found[name] for name in _names(record) if name in found]
        raise TemporarilyUnavailableError(
            f"{record.id}: it was replaced again and again while it was read", errors.SOON
        )

    def _sources(self, wanted: Iterable[tuple[str, str]]) -> dict[str, Source]:
        """By chunk id, those that are there."""
        asked = ({"_id": name, "routing": key} for key, name in wanted)
        found: dict[str, Source] = {}
        for some in portions(asked, CHUNKS):
            for each in self._client.mget(body={"docs": some}, index=self._index)["docs"]:
                if "error" in each:
                    raise errors.of_refusal(0, *errors.told(each))
                if each["found"]:
                    found[each["_id"]] = each["_source"]
        return found

    def _replace(self, record: DocumentRecord, sources: Sequence[Mapping[str, Any]]) -> Replace:
        vectors = np.array([source["vector"] for source in sources], np.float32)
        document = document_source(record)
        return Replace(
            document_id=record.id,
            generation=record.generation,
            content_hash=record.content_hash,
            chunks=tuple(chunk_of(source, document) for source in sources),
            vectors=_unit(vectors.reshape(-1, self._dimension)),
        )


def _names(record: DocumentRecord) -> list[str]:
    return [
        chunk_id(record.key, record.version.name, position)
        for position in range(record.version.chunks)
    ]


def _unit(vectors: Vectors) -> Vectors:
    """What was kept as bytes or rounded, of length 1 again."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Vectors = vectors / lengths
    return found
