"""Puts records into an index of the cluster by hand, as a writer that is half done leaves them."""

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from opensearchpy import OpenSearch

from indexing.index.protocols import Replace
from indexing.index.validation import BatchLimits, PreparedReplace, prepare_batches
from indexing.opensearch.naming import index_name
from indexing.opensearch.record_mapping import DocumentRecord, chunk_source, document_source
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import DIMENSION, IDENTITY

Record: TypeAlias = tuple[str, dict[str, Any]]
"""Its id and its source."""


def prepared(change: Replace) -> PreparedReplace:
    ((item,),) = prepare_batches([change], DIMENSION, BatchLimits(1, 9), BY_LANGUAGE)
    assert isinstance(item, PreparedReplace)
    return item


def chunk_records(record: DocumentRecord, item: PreparedReplace) -> list[Record]:
    """Return the records of all chunks of `item`, in the version that `record` names."""
    sources = [
        chunk_source(record, item, n) | {"vector": item.change.vectors[n].tolist()}
        for n in range(len(item.words))
    ]
    return [(source["chunk"], source) for source in sources]


def document_of(record: DocumentRecord) -> Record:
    return record.key, document_source(record)


def put(client: OpenSearch, prefix: str, records: Iterable[Record]) -> None:
    """Write the records, and refresh the index."""
    index = index_name(prefix, IDENTITY)
    lines: list[str] = []
    for name, source in records:
        action = {"_index": index, "_id": name, "routing": source["key"]}
        lines += [json.dumps({"index": action}), json.dumps(source)]
    assert not client.bulk(body="\n".join(lines) + "\n", params={"refresh": "true"})["errors"]
