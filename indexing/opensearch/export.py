"""Exports the documents of an index in order of ids, a few at a time: for repair, audit and copies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from opensearchpy import OpenSearch

from connectors.access import NOBODY
from connectors.batched import batched
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.embedder import Vectors
from indexing.index.protocols import IndexedDocument, Replace
from indexing.opensearch import errors
from indexing.opensearch.document_records import DocumentRecords
from indexing.opensearch.naming import chunk_id
from indexing.opensearch.record_mapping import (
    DocumentRecord,
    Source,
    chunk_of,
    document_record,
    document_source,
)

PAGE_SIZE = 1_000
"""Documents of one request."""
MAX_CHUNKS = 200
"""Chunks of one request, with their vectors: one or two megabytes."""
COMPLETE = {"allow_partial_search_results": "false"}
"""Fails if a shard is missing: otherwise its documents would be taken for deleted, and no shard counts as failed."""
MAX_ATTEMPTS = 20
"""To read a document that is replaced meanwhile."""


def scan_records(client: OpenSearch, index: str, after: str = "") -> Iterator[DocumentRecord]:
    """Yield the records of documents with ids above `after`, in order of ids; each page is of one moment."""
    while True:
        body = {
            "query": {"term": {"kind": "document"}},
            "sort": [{"id": "asc"}],
            "search_after": [after],
            "size": PAGE_SIZE,
            "track_total_hits": False,
        }
        with errors.translate_errors():
            response = client.search(body=body, index=index, params=COMPLETE)
        found = [document_record(hit["_source"]) for hit in response["hits"]["hits"]]
        if not found:
            return
        yield from found
        after = found[-1].id


def to_indexed_document(record: DocumentRecord) -> IndexedDocument:
    return IndexedDocument(
        record.id,
        record.generation,
        record.version.chunks,
        record.content_hash,
        record.access if record.version.chunks else NOBODY,
    )


class Exporter:
    """Reads documents with their chunks and vectors, several small ones in one request."""

    def __init__(
        self, client: OpenSearch, index: str, records: DocumentRecords, dimension: int
    ) -> None:
        self._client = client
        self._index = index
        self._records = records
        self._dimension = dimension

    def read_after(self, document_id: str) -> Iterator[Replace]:
        group: list[DocumentRecord] = []
        chunks = 0
        for record in scan_records(self._client, self._index, document_id):
            if group and chunks + record.version.chunks > MAX_CHUNKS:
                yield from self._read_group(group)
                group, chunks = [], 0
            group.append(record)
            chunks += record.version.chunks
        yield from self._read_group(group)

    def _read_group(self, group: Sequence[DocumentRecord]) -> Iterator[Replace]:
        with errors.translate_errors():
            sources = self._read_sources(
                (record.key, chunk_id(record.key, record.version.name, position))
                for record in group
                for position in range(record.version.chunks)
            )
        for record in group:
            own = [sources.pop(name, None) for name in _chunk_ids(record)]
            yield from self._read_document(record, [source for source in own if source])

    def _read_document(self, record: DocumentRecord, sources: list[Source]) -> Iterator[Replace]:
        """Read a document again if it was replaced meanwhile, and leave it out if it was deleted."""
        for _ in range(MAX_ATTEMPTS):
            if len(sources) == record.version.chunks:
                yield self._replace(record, sources)
                return
            with errors.translate_errors():
                stored = self._records.read([record.id]).get(record.id)
                if stored is None or stored.record.state != "document":
                    return
                record = stored.record
                found = self._read_sources((record.key, name) for name in _chunk_ids(record))
            sources = [found[name] for name in _chunk_ids(record) if name in found]
        raise TemporarilyUnavailableError(
            f"{record.id}: it was replaced again and again while it was read", errors.RETRY_SOON
        )

    def _read_sources(self, wanted: Iterable[tuple[str, str]]) -> dict[str, Source]:
        """Return the chunks that exist, by id."""
        wanted_docs = ({"_id": name, "routing": key} for key, name in wanted)
        found: dict[str, Source] = {}
        for some in batched(wanted_docs, MAX_CHUNKS):
            for each in self._client.mget(body={"docs": some}, index=self._index)["docs"]:
                if "error" in each:
                    raise errors.refusal_to_error(0, *errors.read_reason(each))
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
            vectors=_normalize(vectors.reshape(-1, self._dimension)),
        )


def _chunk_ids(record: DocumentRecord) -> list[str]:
    return [
        chunk_id(record.key, record.version.name, position)
        for position in range(record.version.chunks)
    ]


def _normalize(vectors: Vectors) -> Vectors:
    """Scale vectors that were stored as bytes or rounded to length 1."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Vectors = vectors / lengths
    return found
