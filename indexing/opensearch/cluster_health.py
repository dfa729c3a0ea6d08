"""How the cluster is: what it runs, whether it is whole, and whether its disks have room."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opensearchpy import OpenSearch

from indexing.opensearch import errors

OLDEST = (2, 17)
"""Version that the mapping and the searches were written for."""
KNN = "opensearch-knn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    node: str
    free_bytes: int
    used: float
    """Share of the disk, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    name: str
    status: str
    records: int
    """Chunks, and one for each document."""
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHealth:
    version: str
    status: str
    """`green`; `yellow`: a copy is missing; `red`: a part of some index is missing."""
    nodes: int
    unassigned_shards: int
    disks: tuple[Disk, ...]
    watermarks: tuple[tuple[str, str], ...]
    """`low`, `high` and `flood_stage`, as they are set: shares or bytes."""
    without_knn: tuple[str, ...]
    """Nodes that lack the k-NN plugin."""
    blocked: tuple[str, ...]
    """Indexes that refuse to be written to, since a disk is nearly full or somebody said so."""
    indexes: tuple[Index, ...]
    """Of the prefix."""

    @property
    def is_too_old(self) -> bool:
        major, minor = (int(part) for part in self.version.split(".")[:2])
        return (major, minor) < OLDEST


def examine(client: OpenSearch, prefix: str) -> ClusterHealth:
    """Ask the cluster.

    Raises:
        TemporarilyUnavailableError: it cannot be reached.
        ActionRequiredError: sign-in, TLS, rights.
    """
    with errors.named_errors():
        health = client.cluster.health()
        return ClusterHealth(
            version=client.info()["version"]["number"],
            status=health["status"],
            nodes=health["number_of_nodes"],
            unassigned_shards=health["unassigned_shards"],
            disks=tuple(_disks(client)),
            watermarks=_watermarks(client),
            without_knn=tuple(_without_knn(client)),
            blocked=tuple(_blocked(client, prefix)),
            indexes=tuple(_indexes(client, prefix)),
        )


def _disks(client: OpenSearch) -> Iterator[Disk]:
    for node in client.nodes.stats(metric="fs")["nodes"].values():
        total, free = (
            node["fs"]["total"]["total_in_bytes"],
            node["fs"]["total"]["available_in_bytes"],
        )
        if total > 0:
            yield Disk(node=node["name"], free_bytes=free, used=1.0 - free / total)


def _watermarks(client: OpenSearch) -> tuple[tuple[str, str], ...]:
    """What is set for now outweighs what is set for good, and that the default."""
    found = client.cluster.get_settings(
        params={"include_defaults": "true", "flat_settings": "true"}
    )
    told: dict[str, Any] = found["defaults"] | found["persistent"] | found["transient"]
    stem = "cluster.routing.allocation.disk.watermark."
    return tuple((name, str(told[stem + name])) for name in ("low", "high", "flood_stage"))


def _without_knn(client: OpenSearch) -> Iterator[str]:
    """By what nodes can do, for a plugin may be loaded under another name than it is released."""
    for node in client.nodes.info(metric="plugins")["nodes"].values():
        names = {f"{plugin['name']} {plugin['classname']}" for plugin in node["plugins"]}
        if not any(KNN in name or "KNNPlugin" in name for name in names):
            yield node["name"]


def _blocked(client: OpenSearch, prefix: str) -> Iterator[str]:
    found = client.indices.get_settings(
        index=f"{prefix}-*", name="index.blocks.*", params={"flat_settings": "true"}
    )
    for name, told in sorted(found.items()):
        if "true" in told["settings"].values():
            yield name


def _indexes(client: OpenSearch, prefix: str) -> Iterator[Index]:
    asked = {
        "format": "json",
        "bytes": "b",
        "h": "index,health,docs.count,store.size",
        "s": "index",
    }
    for row in client.cat.indices(index=f"{prefix}-*", params=asked):
        yield Index(
            name=row["index"],
            status=row["health"],
            records=int(row["docs.count"] or 0),
            bytes=int(row["store.size"] or 0),
        )
