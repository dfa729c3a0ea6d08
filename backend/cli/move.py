"""`quarry move`: the index from one engine to the other, as it is."""

from collections.abc import Callable, Iterator
from functools import partial

from backend.composition.index import EngineName
from backend.container import Container
from backend.schemas.models import Wire
from backend.sync.maintenance_lock import sole_change, standstill
from connectors.errors import ActionRequiredError
from indexing.index.versions import IndexVersion, IndexVersions
from indexing.rebuild.copy_index import CopyEndpoint, CopyEvent, CopyResult, copy_index

KIND = "move"


class MovedWire(Wire):
    to: str
    copied: int
    deleted: int
    documents: int
    chunks: int
    asked: int
    words: float
    vectors: float
    advice: str


def move_index(container: Container, to: EngineName) -> Iterator[CopyEvent]:
    """Copy the index of the other engine to this one, and compare.

    Raises:
        ActionRequiredError: an engine is not set up, there is no index to move, or the copy does not agree.
        TemporarilyUnavailableError: another process rebuilds or moves the index.
    """
    source, target = container.engine.versions_in(_other(to)), container.engine.versions_in(to)
    index_version = source.active()
    if index_version is None:
        raise ActionRequiredError(
            f"There is no {_other(to)} index to move. Sync first: quarry sync."
        )
    with sole_change(container.home):
        place, switch = _target(target, index_version)
        origin = CopyEndpoint(
            source.open_writer(index_version), partial(source.open_index, index_version)
        )
        yield from copy_index(origin, place, partial(standstill, container.database, KIND), switch)


def encoded(to: EngineName, done: CopyResult) -> MovedWire:
    comparison = done.comparison
    return MovedWire(
        to=to,
        copied=done.documents,
        deleted=done.deleted,
        documents=comparison.documents,
        chunks=comparison.chunks,
        asked=comparison.asked,
        words=round(comparison.words, 4),
        vectors=round(comparison.vectors, 4),
        advice=_advice(to),
    )


def _other(engine: EngineName) -> EngineName:
    return "embedded" if engine == "opensearch" else "opensearch"


def _target(
    index_versions: IndexVersions, index_version: IndexVersion
) -> tuple[CopyEndpoint, Callable[[], None]]:
    """Where the copy goes, and what makes it the active index version there."""
    active = index_versions.active()
    if active and active.embedder == index_version.embedder and index_versions.building() is None:
        writer = index_versions.open_writer(index_version)
        return CopyEndpoint(writer, partial(index_versions.open_index, index_version)), _nothing
    writer = index_versions.start_build(index_version)
    return CopyEndpoint(writer, index_versions.open_build_index), partial(
        index_versions.activate, index_version
    )


def _nothing() -> None:
    """A copy that was made before has only been brought up to date."""


def _advice(to: EngineName) -> str:
    match to:
        case "opensearch":
            return "from now on keep QUARRY_OPENSEARCH_URL set, for every command and server"
        case "embedded":
            return "from now on unset QUARRY_OPENSEARCH_URL, for every command and server"
