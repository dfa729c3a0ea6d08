"""`quarry reindex`: build the index again, for another embedding model or for the same."""

import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from backend.cli import command_line, rebuild_output
from backend.cli.command_line import Json
from backend.composition.index import IndexEngine
from backend.container import Container
from backend.schemas.index import (
    IndexVersionResponse,
    MissingDocument,
    ReindexAbandoned,
    ReindexReport,
    ReindexStatus,
)
from backend.settings import Settings, variable
from backend.store.database import Database
from backend.store.documents import document_sets
from backend.store.files import file_labels
from backend.sync.maintenance_lock import hold_all_sources, lock_index
from connectors.errors import ConflictError, TemporarilyUnavailableError
from indexing.index.protocols import IndexWriter
from indexing.index.versions import IndexVersion
from indexing.ingestion.ledger import Ledger
from indexing.rebuild.copy_index import copy_missing
from indexing.rebuild.events import RateLimit, RebuildEvent, RebuildProgress, RebuildResult
from indexing.rebuild.reindex import Reindexer

KIND = "reindex"
_NOTHING_DONE = RebuildResult(documents=0, chunks=0, deleted=0, amended=0, missing=(), seconds=0.0)


def reindex(
    model: Annotated[
        str | None,
        typer.Option(help="The embedding model to change to, as in QUARRY_EMBEDDING_MODEL."),
    ] = None,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Build the index again for the model it has."),
    ] = False,
    rate: Annotated[
        float | None, typer.Option(min=0.1, help="Maximum chunks per second, on average.")
    ] = None,
    words: Annotated[
        bool,
        typer.Option(
            "--words",
            help="Rebuild only the full-text index, as after an update of Quarry that stems other languages."
            " Chunks and vectors are kept.",
        ),
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Only show the progress.")] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Remove the unfinished build.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Build the index for another embedding model, while the old one is searched.

    Nothing is fetched: documents are chunked and embedded again from their stored sections. It can be stopped at
    any time; the same command, or `quarry reindex` alone, continues.
    """
    if sum([model is not None, rebuild, words, status, abandon]) > 1:
        raise typer.BadParameter("give one of --model, --rebuild, --words, --status and --abandon")
    with command_line.cli_errors(as_json):
        container, console = command_line.open_home(), command_line.console()
        if status:
            found = get_status(container.engine, container.sources.ledger)
            if as_json:
                command_line.print_model(found)
            else:
                rebuild_output.print_status(console, found)
        elif abandon:
            removed = abandon_build(container.engine)
            if as_json:
                command_line.print_model(removed)
            else:
                rebuild_output.print_abandoned(console, removed)
        else:
            pace = RateLimit(rate)
            if model is not None:
                steps = change_model(container, model, pace)
            elif rebuild:
                steps = rebuild_index(container, pace)
            elif words:
                steps = renew_words(container, pace)
            else:
                steps = continue_build(container, pace)
            _run_reindex(container.engine, steps, as_json)


def _run_reindex(engine: IndexEngine, steps: Iterator[RebuildEvent], as_json: bool) -> None:
    with rebuild_output.show_progress(command_line.console(sys.stderr)) as progress:
        done = to_report(engine, progress.follow_reindex(steps))
    if as_json:
        command_line.print_model(done)
    else:
        rebuild_output.print_reindexed(command_line.console(), done)
    if done.missing:
        raise typer.Exit(command_line.DONE_WITH_FAILURES)


def change_model(container: Container, model: str, pace: RateLimit) -> Iterator[RebuildEvent]:
    """Build the index for `model`; where the index is of that model already, only finish the switch to it.

    Raises:
        ActionRequiredError: the model cannot be loaded, or a build for another model was begun.
        TemporarilyUnavailableError: another process rebuilds or moves the index.
    """
    with lock_index(container.home):
        wanted = container.with_model(_resolve_model(model))
        active, building = wanted.engine.versions.active(), wanted.engine.versions.building()
        if building is None and active and active.embedder == wanted.engine.version.embedder:
            yield _finish_switch(wanted)
        else:
            yield from _build(wanted, pace)


def rebuild_index(container: Container, pace: RateLimit) -> Iterator[RebuildEvent]:
    """Build the index again for the model that it has. Raises as `change_model`."""
    active = container.engine.versions.active()
    with lock_index(container.home):
        yield from _build(container.with_model(active.model_name) if active else container, pace)


def renew_words(container: Container, pace: RateLimit) -> Iterator[RebuildEvent]:
    """Rebuild the full-text index, by copying its chunks and vectors to a new version of it.

    `pace` holds for what is changed meanwhile, and so embedded. Raises as `change_model`.
    """
    active = container.engine.versions.active()
    with lock_index(container.home):
        if active is None or container.engine.versions.has_current_words():
            yield _NOTHING_DONE
            return
        current = container.with_model(active.model_name)
        copied = yield from _copy_index(current.engine)
        for event in _build(current, pace):
            yield replace(event, copied=copied) if isinstance(event, RebuildResult) else event


def _copy_index(engine: IndexEngine) -> Generator[RebuildEvent, None, int]:
    """Copy what the index that is being built lacks, and return the number of documents."""
    versions, version = engine.versions, engine.version
    began, documents = time.monotonic(), 0
    for step in copy_missing(versions.open_writer(version), versions.start_build(version)):
        documents, elapsed = step.documents, time.monotonic() - began
        left = step.total - documents
        yield RebuildProgress(
            documents=documents,
            total=step.total,
            chunks=step.chunks,
            rate=step.chunks / elapsed,
            seconds_left=left * elapsed / documents if documents else None,
        )
    return documents


def continue_build(container: Container, pace: RateLimit) -> Iterator[RebuildEvent]:
    """Continue the build that was begun. Raises as `change_model`.

    Raises:
        ConflictError: none was begun.
    """
    building = container.engine.versions.building()
    if building is None:
        raise ConflictError(
            "No index is being built. For another model: quarry reindex --model MODEL. To build it again for"
            " the model it has: quarry reindex --rebuild."
        )
    with lock_index(container.home):
        yield from _build(container.with_model(building.model_name), pace)


def abandon_build(engine: IndexEngine) -> ReindexAbandoned:
    """Remove the build that was begun, and return what it was.

    Raises:
        TemporarilyUnavailableError: another process works on it; stop that first.
    """
    with lock_index(engine.home):
        building = engine.versions.building()
        engine.versions.discard_build()
    return ReindexAbandoned(abandoned=_describe_version(building))


def get_status(engine: IndexEngine, ledger: Ledger) -> ReindexStatus:
    """Return how far the build of an index is. Raises IndexVersionReplacedError: the version was switched meanwhile."""
    index_versions = engine.versions
    active, building = index_versions.active(), index_versions.building()
    return ReindexStatus(
        active=_describe_version(active),
        building=_describe_version(building),
        running=_is_running(engine.home),
        documents=_count(index_versions.open_build_writer()),
        total=sum(map(ledger.count, ledger.sources())),
    )


def to_report(engine: IndexEngine, done: RebuildResult) -> ReindexReport:
    active = engine.versions.active()
    return ReindexReport(
        model=active.model_name if active else "",
        documents=done.documents,
        chunks=done.chunks,
        copied=done.copied,
        deleted=done.deleted,
        amended=done.amended,
        missing=tuple(
            MissingDocument(document_id=each.document_id, reason=each.reason)
            for each in done.missing
        ),
        seconds=round(done.seconds, 3),
        advice=_advice(engine.settings, active),
    )


def _resolve_model(model: str) -> str:
    """Make the path of a folder absolute, so that it holds in every working directory."""
    folder = Path(model).expanduser()
    return str(folder.absolute()) if folder.is_dir() else model


def _build(container: Container, pace: RateLimit) -> Iterator[RebuildEvent]:
    index_version = container.engine.version
    writer = container.engine.versions.start_build(index_version)
    reindexing = Reindexer(container.embedding.embedder, writer, container.sources.ledger, pace)
    return reindexing.run(
        partial(hold_all_sources, container.database, KIND),
        partial(_activate, container.database, container.engine, index_version),
    )


def _activate(database: Database, engine: IndexEngine, index_version: IndexVersion) -> None:
    # What was updated of sets and files while the new version was built, it may have missed.
    document_sets.reapply_all(database)
    file_labels.mark_all_due(database)
    engine.versions.activate(index_version)


def _finish_switch(container: Container) -> RebuildResult:
    """Finish a switch after which the process ended."""
    container.engine.versions.activate(container.engine.version)
    with hold_all_sources(container.database, KIND) as go_on:
        Reindexer(
            container.embedding.embedder, container.engine.writer, container.sources.ledger
        ).update_chunk_counts(go_on)
    return _NOTHING_DONE


def _describe_version(index_version: IndexVersion | None) -> IndexVersionResponse | None:
    if index_version is None:
        return None
    embedder = index_version.embedder
    return IndexVersionResponse(
        model=index_version.model_name,
        version=embedder.version,
        precision=embedder.precision,
        dimension=embedder.dimension,
    )


def _count(writer: IndexWriter | None) -> int:
    return sum(1 for _ in writer.scan()) if writer else 0


def _is_running(home: Path) -> bool:
    try:
        with lock_index(home):
            return False
    except TemporarilyUnavailableError:
        return True


def _advice(settings: Settings, active: IndexVersion | None) -> str | None:
    """Warn where the settings name another model for the next command."""
    if active is None or "embedding_model" not in settings.model_fields_set:
        return None
    if _resolve_model(settings.embedding_model) == active.model_name:
        return None
    name = variable("embedding_model")
    return (
        f"{name} is set to {settings.embedding_model}, but the index is for another model: unset it, or set"
        f" it to {active.model_name}"
    )
