"""`quarry reindex`: the index built anew, for another model or for the same."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from backend.container import Container
from backend.schemas.models import Wire
from backend.settings import variable
from backend.sync.maintenance_lock import sole_change, standstill
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.index.protocols import IndexWriter
from indexing.index.versions import IndexVersion
from indexing.rebuild.events import RateLimit, RebuildEvent, RebuildResult
from indexing.rebuild.reindex import Reindexer

KIND = "reindex"


class EditionWire(Wire):
    model: str
    version: str
    precision: str
    dimension: int


class StatusWire(Wire):
    active: EditionWire | None
    building: EditionWire | None
    running: bool
    documents: int
    """Held by the index version that is being built; some of them may have changed since."""
    total: int


class AbandonedWire(Wire):
    abandoned: EditionWire | None
    """`None`: nothing was being built."""


class MissingWire(Wire):
    document_id: str
    reason: str


class RebuiltWire(Wire):
    model: str
    documents: int
    chunks: int
    deleted: int
    amended: int
    missing: tuple[MissingWire, ...]
    seconds: float
    advice: str | None


def change_model(container: Container, model: str, pace: RateLimit) -> Iterator[RebuildEvent]:
    """Make the index one of `model`; where it is already, only what was left undone is done.

    Raises:
        ActionRequiredError: the model is not to be had, or one for another model is being built.
        TemporarilyUnavailableError: another process is at it.
    """
    with sole_change(container.home):
        wanted = container.with_model(_called(model))
        active, building = wanted.engine.versions.active(), wanted.engine.versions.building()
        if building is None and active and active.embedder == wanted.engine.version.embedder:
            yield _finished(wanted)
        else:
            yield from _built(wanted, pace)


def rebuild(container: Container, pace: RateLimit) -> Iterator[RebuildEvent]:
    """Build the index anew for the model that it has. As `change_model`."""
    active = container.engine.versions.active()
    with sole_change(container.home):
        yield from _built(container.with_model(active.model_name) if active else container, pace)


def go_on(container: Container, pace: RateLimit) -> Iterator[RebuildEvent]:
    """Go on with what is being built. As `change_model`.

    Raises:
        ActionRequiredError: nothing is.
    """
    building = container.engine.versions.building()
    if building is None:
        raise ActionRequiredError(
            "No index is being built. For another model: quarry reindex --model MODEL. To build the index"
            " anew for the one it has: quarry reindex --rebuild."
        )
    with sole_change(container.home):
        yield from _built(container.with_model(building.model_name), pace)


def abandoned(container: Container) -> AbandonedWire:
    """Remove what is being built, and tell what it was.

    Raises:
        TemporarilyUnavailableError: it is being worked on; stop that first.
    """
    with sole_change(container.home):
        building = container.engine.versions.building()
        container.engine.versions.discard_build()
    return AbandonedWire(abandoned=_edition(building))


def status(container: Container) -> StatusWire:
    """Raises IndexVersionReplacedError: the index version was switched while it was looked at."""
    index_versions = container.engine.versions
    active, building = index_versions.active(), index_versions.building()
    return StatusWire(
        active=_edition(active),
        building=_edition(building),
        running=_is_running(container.home),
        documents=_count(index_versions.open_build_writer()),
        total=sum(map(container.ledger.count, container.ledger.sources())),
    )


def encoded(container: Container, done: RebuildResult) -> RebuiltWire:
    active = container.engine.versions.active()
    return RebuiltWire(
        model=active.model_name if active else "",
        documents=done.documents,
        chunks=done.chunks,
        deleted=done.deleted,
        amended=done.amended,
        missing=tuple(
            MissingWire(document_id=each.document_id, reason=each.reason) for each in done.missing
        ),
        seconds=round(done.seconds, 3),
        advice=_advice(container, active),
    )


def _called(model: str) -> str:
    """A folder by a path that means the same wherever the next command is typed."""
    folder = Path(model).expanduser()
    return str(folder.absolute()) if folder.is_dir() else model


def _built(container: Container, pace: RateLimit) -> Iterator[RebuildEvent]:
    index_version = container.engine.version
    writer = container.engine.versions.start_build(index_version)
    reindexing = Reindexer(container.embedding.embedder, writer, container.ledger, pace)
    return reindexing.run(
        partial(standstill, container.database, KIND),
        partial(container.engine.versions.activate, index_version),
    )


def _finished(container: Container) -> RebuildResult:
    """After a switch that was the last thing a process did."""
    container.engine.versions.activate(container.engine.version)
    with standstill(container.database, KIND) as go_on:
        Reindexer(
            container.embedding.embedder, container.engine.writer, container.ledger
        ).update_chunk_counts(go_on)
    return RebuildResult(documents=0, chunks=0, deleted=0, amended=0, missing=(), seconds=0.0)


def _edition(index_version: IndexVersion | None) -> EditionWire | None:
    if index_version is None:
        return None
    embedder = index_version.embedder
    return EditionWire(
        model=index_version.model_name,
        version=embedder.version,
        precision=embedder.precision,
        dimension=embedder.dimension,
    )


def _count(writer: IndexWriter | None) -> int:
    return sum(1 for _ in writer.scan()) if writer else 0


def _is_running(home: Path) -> bool:
    try:
        with sole_change(home):
            return False
    except TemporarilyUnavailableError:
        return True


def _advice(container: Container, active: IndexVersion | None) -> str | None:
    """What is set for the next command, where that is another model."""
    settings = container.settings
    if active is None or "embedding_model" not in settings.model_fields_set:
        return None
    if _called(settings.embedding_model) == active.model_name:
        return None
    name = variable("embedding_model")
    return (
        f"{name} is set to {settings.embedding_model}, which the index is no longer of: unset it, or set"
        f" it to {active.model_name}"
    )
