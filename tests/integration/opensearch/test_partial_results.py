"""Search results while a part of the index does not answer."""

import time

import pytest
from opensearchpy import OpenSearch

from connectors.access import Readers
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Filters
from indexing.opensearch.mapping import IndexLayout, VectorSettings, index_body
from indexing.opensearch.naming import document_key, index_name
from indexing.opensearch.open_index import open_index, open_writer
from indexing.opensearch.record_mapping import Version, record_of
from indexing.opensearch.searcher import OpenSearchIndex
from indexing.runtime.deadline import Deadline
from indexing.text.analysis import BY_LANGUAGE
from tests.support.chunks import DIMENSION, IDENTITY, document, query, vector
from tests.support.opensearch_records import chunk_records, document_of, prepared, put

PUBLIC = Readers.of()


def soon() -> Deadline:
    return Deadline.after(30)


@pytest.fixture
def half(client: OpenSearch, prefix: str) -> tuple[OpenSearchIndex, list[str]]:
    """An index with one of two shards unassigned, and the documents of the other."""
    name = index_name(prefix, IDENTITY)
    body = index_body(name, IDENTITY, IndexLayout(shards=2))
    # The only node may hold one shard, so that the other stays unassigned.
    body["settings"]["index"]["routing.allocation.total_shards_per_node"] = 1
    client.indices.create(index=name, body=body, params={"wait_for_active_shards": "0"})
    while all(row["state"] != "STARTED" for row in client.cat.shards(index=name, format="json")):
        time.sleep(0.05)
    ids = [each for each in map(str, range(40)) if _is_there(client, name, each)]
    for item in (prepared(document(each, "text X-77")) for each in ids):
        record = record_of(item, Version("v", 1))
        put(client, prefix, [*chunk_records(record, item), document_of(record)])
    return OpenSearchIndex(client, name, DIMENSION, VectorSettings(), BY_LANGUAGE), ids


def _is_there(client: OpenSearch, name: str, document_id: str) -> bool:
    shards = client.search_shards(index=name, params={"routing": document_key(document_id)})
    return any(copy["state"] == "STARTED" for copies in shards["shards"] for copy in copies)


def test_hits_of_the_other_shard_are_found_and_marked_as_partial(
    half: tuple[OpenSearchIndex, list[str]],
) -> None:
    index, ids = half
    asked = query("text", vector=vector("v"), alpha=0.5, exact=("X-77",))
    found = index.find([asked, query("text")], PUBLIC, soon())
    assert 0 < len(ids) < 40
    for ranking in found.rankings:
        assert sorted(hit.chunk.document_id for hit in ranking) == sorted(ids)
    assert found.partial


def test_operations_that_need_every_shard_are_to_be_retried(
    half: tuple[OpenSearchIndex, list[str]],
) -> None:
    index, ids = half
    with pytest.raises(TemporarilyUnavailableError):
        index.chunks([ChunkRange(ids[0], 0, 9)], PUBLIC, soon())
    with pytest.raises(TemporarilyUnavailableError):
        index.facets(Filters(), PUBLIC, soon())


def test_an_index_without_shards_is_to_be_retried(client: OpenSearch, prefix: str) -> None:
    name = index_name(prefix, IDENTITY)
    body = index_body(name, IDENTITY, IndexLayout())
    body["settings"]["index"]["routing.allocation.require._name"] = "nowhere"
    client.indices.create(index=name, body=body, params={"wait_for_active_shards": "0"})
    index = OpenSearchIndex(client, name, DIMENSION, VectorSettings(), BY_LANGUAGE)
    with pytest.raises(TemporarilyUnavailableError):
        index.find([query("text")], PUBLIC, soon())


def test_an_index_that_is_gone_is_a_matter_for_its_owner(client: OpenSearch, prefix: str) -> None:
    name = index_name(prefix, IDENTITY)
    open_writer(client, prefix, IDENTITY)
    index = open_index(client, prefix, IDENTITY)
    client.indices.delete(index=name)
    with pytest.raises(ActionRequiredError, match="does not exist"):
        index.find([query("text")], PUBLIC, soon())
    with pytest.raises(ActionRequiredError, match="does not exist"):
        index.chunks([ChunkRange("a", 0, 9)], PUBLIC, soon())


def test_a_closed_index_is_a_matter_for_its_owner(client: OpenSearch, prefix: str) -> None:
    open_writer(client, prefix, IDENTITY).write([document("a", "text")])
    index = open_index(client, prefix, IDENTITY)
    client.indices.close(index=index_name(prefix, IDENTITY))
    with pytest.raises(ActionRequiredError):
        index.find([query("text")], PUBLIC, soon())
