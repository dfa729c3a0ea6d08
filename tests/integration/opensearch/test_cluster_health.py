"""What a cluster reports about itself."""

from opensearchpy import OpenSearch

from indexing.opensearch.cluster_health import read_cluster_health
from indexing.opensearch.open_index import open_writer
from tests.support.chunks import IDENTITY, document


def test_a_cluster_without_our_indexes(client: OpenSearch, prefix: str) -> None:
    health = read_cluster_health(client, prefix)
    assert health.nodes == 1
    assert health.without_knn == ()
    assert (health.indexes, health.blocked) == ((), ())
    assert [name for name, _ in health.watermarks] == ["low", "high", "flood_stage"]
    assert all(0.0 < disk.used < 1.0 and disk.free_bytes > 0 for disk in health.disks)
    assert not health.is_too_old


def test_records_are_counted_and_blocks_are_seen(client: OpenSearch, prefix: str) -> None:
    open_writer(client, prefix, IDENTITY).write([document("a", "one", "two")])
    (index,) = read_cluster_health(client, prefix).indexes
    assert (index.status, index.records) == ("green", 3)
    client.indices.put_settings(
        index=index.name, body={"index.blocks.read_only_allow_delete": True}
    )
    assert read_cluster_health(client, prefix).blocked == (index.name,)
