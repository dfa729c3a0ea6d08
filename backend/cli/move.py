"""`quarry move`: copy the index from one engine to the other."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

import typer

from backend.cli import command_line, rebuild_output
from backend.cli.command_line import Json
from backend.composition.index import EngineName
from backend.container import Container
from backend.schemas.index import MoveReport
from backend.sync.maintenance_lock import hold_all_sources, lock_index
from connectors.errors import NotFoundError
from indexing.index.versions import IndexVersion, IndexVersions
from indexing.rebuild.copy_index import CopyEndpoint, CopyEvent, CopyResult, copy_index

KIND = "move"


def move(
    to: Annotated[str, typer.Option(metavar="ENGINE", help="opensearch or embedded.")],
    as_json: Json = False,
) -> None:
    """Copy the index to the other engine, without embedding anything."""
    with command_line.cli_errors(as_json):
        if to not in ("opensearch", "embedded"):
            raise typer.BadParameter("write opensearch or embedded", param_hint="--to")
        container = command_line.open_home()
        engine: EngineName = "opensearch" if to == "opensearch" else "embedded"
        with rebuild_output.show_progress(command_line.console(sys.stderr)) as progress:
            done = to_report(engine, progress.follow_move(move_index(container, engine)))
        if as_json:
            command_line.print_model(done)
        else:
            rebuild_output.print_moved(command_line.console(), done)


def move_index(container: Container, to: EngineName) -> Iterator[CopyEvent]:
    """Copy the index of the other engine to this one, and compare.

    Raises:
        ActionRequiredError: an engine is not set up, there is no index to move, or the copy differs.
        TemporarilyUnavailableError: another process rebuilds or moves the index.
    """
    source, target = container.engine.versions_in(_other(to)), container.engine.versions_in(to)
    index_version = source.active()
    if index_version is None:
        raise NotFoundError(f"There is no {_other(to)} index to move. To build it: quarry sync.")
    with lock_index(container.home):
        place, switch = _target(target, index_version)
        origin = CopyEndpoint(
            source.open_writer(index_version), partial(source.open_index, index_version)
        )
        yield from copy_index(
            origin, place, partial(hold_all_sources, container.database, KIND), switch
        )


def to_report(to: EngineName, done: CopyResult) -> MoveReport:
    comparison = done.comparison
    return MoveReport(
        to=to,
        copied=done.documents,
        deleted=done.deleted,
        documents=comparison.documents,
        chunks=comparison.chunks,
        asked=comparison.sampled,
        words=round(comparison.words, 4),
        vectors=round(comparison.vectors, 4),
        advice=_advice(to),
    )


def _other(engine: EngineName) -> EngineName:
    return "embedded" if engine == "opensearch" else "opensearch"


def _target(
    index_versions: IndexVersions, index_version: IndexVersion
) -> tuple[CopyEndpoint, Callable[[], None]]:
    """Return the target of the copy, and the call that makes it the active index version there."""
    active = index_versions.active()
    if active and active.embedder == index_version.embedder and index_versions.building() is None:
        writer = index_versions.open_writer(index_version)
        return CopyEndpoint(writer, partial(index_versions.open_index, index_version)), _nothing
    writer = index_versions.start_build(index_version)
    return CopyEndpoint(writer, index_versions.open_build_index), partial(
        index_versions.activate, index_version
    )


def _nothing() -> None:
    """Do nothing: an earlier copy was only brought up to date, so there is nothing to switch."""


def _advice(to: EngineName) -> str:
    match to:
        case "opensearch":
            return "from now on keep QUARRY_OPENSEARCH_URL set, for every command and server"
        case "embedded":
            return "from now on unset QUARRY_OPENSEARCH_URL, for every command and server"
