"""Reads the state of the cluster: version, health, disks and indexes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opensearchpy import OpenSearch

from indexing.opensearch import errors

MIN_VERSION = (2, 17)
"""The first version that supports the mapping and the queries."""
KNN_PLUGIN = "opensearch-knn"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUsage:
    node: str
    free_bytes: int
    used: float
    """Share of the disk, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    name: str
    status: str
    records: int
    """Chunks, and one per document."""
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHealth:
    version: str
    status: str
    """`green`; `yellow`: a replica is missing; `red`: a part of some index is missing."""
    nodes: int
    unassigned_shards: int
    disks: tuple[DiskUsage, ...]
    watermarks: tuple[tuple[str, str], ...]
    """`low`, `high` and `flood_stage`, as configured: shares or bytes."""
    without_knn: tuple[str, ...]
    """Nodes without the k-NN plugin."""
    blocked: tuple[str, ...]
    """Indexes that refuse writes, because a disk is nearly full or somebody blocked them."""
    indexes: tuple[IndexStatus, ...]
    """Those of the prefix."""

    @property
    def is_too_old(self) -> bool:
        major, minor = (int(part) for part in self.version.split(".")[:2])
        return (major, minor) < MIN_VERSION


def read_cluster_health(client: OpenSearch, prefix: str) -> ClusterHealth:
    """Query the cluster.

    Raises:
        TemporarilyUnavailableError: it is unreachable.
        ActionRequiredError: sign-in, TLS, permissions.
    """
    with errors.translate_errors():
        health = client.cluster.health()
        return ClusterHealth(
            version=client.info()["version"]["number"],
            status=health["status"],
            nodes=health["number_of_nodes"],
            unassigned_shards=health["unassigned_shards"],
            disks=tuple(_read_disks(client)),
            watermarks=_read_watermarks(client),
            without_knn=tuple(_find_nodes_without_knn(client)),
            blocked=tuple(_find_blocked_indexes(client, prefix)),
            indexes=tuple(_read_indexes(client, prefix)),
        )


def _read_disks(client: OpenSearch) -> Iterator[DiskUsage]:
    for node in client.nodes.stats(metric="fs")["nodes"].values():
        total, free = (
            node["fs"]["total"]["total_in_bytes"],
            node["fs"]["total"]["available_in_bytes"],
        )
        if total > 0:
            yield DiskUsage(node=node["name"], free_bytes=free, used=1.0 - free / total)


def _read_watermarks(client: OpenSearch) -> tuple[tuple[str, str], ...]:
    """Read the watermarks: transient settings override persistent ones, and those the defaults."""
    found = client.cluster.get_settings(
        params={"include_defaults": "true", "flat_settings": "true"}
    )
    settings: dict[str, Any] = found["defaults"] | found["persistent"] | found["transient"]
    stem = "cluster.routing.allocation.disk.watermark."
    return tuple((name, str(settings[stem + name])) for name in ("low", "high", "flood_stage"))


def _find_nodes_without_knn(client: OpenSearch) -> Iterator[str]:
    """Check the plugin's class as well as its name, which may differ between distributions."""
    for node in client.nodes.info(metric="plugins")["nodes"].values():
        names = {f"{plugin['name']} {plugin['classname']}" for plugin in node["plugins"]}
        if not any(KNN_PLUGIN in name or "KNNPlugin" in name for name in names):
            yield node["name"]


def _find_blocked_indexes(client: OpenSearch, prefix: str) -> Iterator[str]:
    found = client.indices.get_settings(
        index=f"{prefix}-*", name="index.blocks.*", params={"flat_settings": "true"}
    )
    for name, index in sorted(found.items()):
        if "true" in index["settings"].values():
            yield name


def _read_indexes(client: OpenSearch, prefix: str) -> Iterator[IndexStatus]:
    parameters = {
        "format": "json",
        "bytes": "b",
        "h": "index,health,docs.count,store.size",
        "s": "index",
    }
    for row in client.cat.indices(index=f"{prefix}-*", params=parameters):
        yield IndexStatus(
            name=row["index"],
            status=row["health"],
            records=int(row["docs.count"] or 0),
            bytes=int(row["store.size"] or 0),
        )
