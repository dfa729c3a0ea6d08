"""How the cluster is, in words: what it lacks and what to do about it."""

from collections.abc import Iterator

from backend.schemas.models import CheckWire
from backend.settings import variable
from indexing.opensearch.cluster_health import OLDEST, ClusterHealth

NEARLY_FULL = 0.85
"""Share of a disk from which on a cluster, left as it is, begins to move shards away."""


def described(health: ClusterHealth) -> CheckWire:
    """The check of a cluster that answers."""
    failures, warnings = list(_failures(health)), list(_warnings(health))
    return CheckWire(
        name="opensearch",
        state="failed" if failures else "warning" if warnings else "ok",
        detail=_detail(health),
        advice="; ".join(failures + warnings) or None,
    )


def _detail(health: ClusterHealth) -> str:
    disks = ", ".join(
        f"{disk.node} {disk.free_bytes / 1e9:.0f} GB free ({disk.used:.0%} used)"
        for disk in health.disks
    )
    marks = ", ".join(f"{name} {value}" for name, value in health.watermarks)
    held = ", ".join(
        f"{index.name} ({index.status}, {index.records:,} records, {index.bytes / 1e6:,.0f} MB)"
        for index in health.indexes
    )
    return (
        f"version {health.version}, {health.status}, {health.nodes} nodes; disks: {disks};"
        f" watermarks: {marks}; indexes: {held or 'none yet'}"
    )


def _failures(health: ClusterHealth) -> Iterator[str]:
    if health.is_too_old:
        yield f"Quarry needs OpenSearch {'.'.join(map(str, OLDEST))} or newer"
    if health.without_knn:
        yield f"install the plugin opensearch-knn on: {', '.join(health.without_knn)}"
    if health.status == "red":
        yield "a part of an index is missing; bring back the nodes that hold it"
    if health.blocked:
        yield (
            f"{', '.join(health.blocked)} refuses to be written to; free space on the disks, then set"
            " index.blocks.read_only_allow_delete to null"
        )


def _warnings(health: ClusterHealth) -> Iterator[str]:
    if health.status == "yellow":
        yield (
            f"{health.unassigned_shards} copies of shards have no node; add one, or set"
            f" {variable('opensearch_replicas')}=0 for new indexes"
        )
    full = [disk.node for disk in health.disks if disk.used >= NEARLY_FULL]
    if full:
        yield f"nearly full: {', '.join(full)}; free space, or add a node"
