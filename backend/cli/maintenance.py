"""What the owner of the machine does with documents and the index."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli import command_context
from backend.cli.command_context import Json

if TYPE_CHECKING:
    from backend.cli.reindex import RebuiltWire
    from backend.cli.rendering import Bars
    from backend.composition.index import EngineName
    from backend.container import Container
    from backend.schemas import models
    from indexing.ingestion.pipeline import EmptyListing


def sync(
    name: Annotated[str | None, typer.Argument(help="One source; all of them by default.")] = None,
    accept_empty: Annotated[
        bool,
        typer.Option(
            "--accept-empty", help="Believe a source that lists nothing, and delete what it had."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring the index in step with the sources."""
    from backend.cli import rendering
    from backend.schemas import conversion
    from backend.store import sources as stored
    from indexing.ingestion.pipeline import EmptyListing

    with command_context.told(as_json):
        container = command_context.open_home()
        chosen = (
            [stored.find(container.database, name)] if name else stored.listing(container.database)
        )
        if not chosen:
            command_context.fail("There is no source yet. Add one: quarry add folder PATH", as_json)
        with rendering.progress(command_context.console(sys.stderr)) as bars:
            when_empty = EmptyListing.ACCEPT if accept_empty else EmptyListing.REFUSE
            done = [_sync_one(container, source.name, when_empty, bars) for source in chosen]
        if as_json:
            command_context.print_json(conversion.listed(done))
        else:
            for one in done:
                rendering.synced(command_context.console(), one)
    if any(one.error for one in done):
        raise typer.Exit(command_context.FAILED)
    if any(one.unreadable_count for one in done):
        raise typer.Exit(command_context.DONE_WITH_FAILURES)


def _sync_one(
    container: "Container", name: str, when_empty: "EmptyListing", bars: "Bars"
) -> "models.SyncWire":
    """One source; what stops it does not stop the others."""
    from backend.schemas import conversion
    from backend.store import sources as stored
    from backend.sync.foreground_run import sync as run
    from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
    from indexing.ingestion.progress import Report

    def synced(container: "Container") -> Report:
        source, report = stored.find(container.database, name), Report()
        connector, pipeline = container.connector(source), container.pipeline(source)
        for step in run(container.database, source, connector, pipeline, when_empty):
            if isinstance(step, Report):
                report = step
            else:
                bars.show(step)
        return report

    report, error = Report(), None
    try:
        report = command_context.through_a_switch(container, synced)
    except (ActionRequiredError, TemporarilyUnavailableError) as failure:
        error = str(failure)
    return conversion.synced(name, report, error)


def documents(as_json: Json = False) -> None:
    """List every document that is held, with who may read it."""
    from backend.cli import rendering
    from backend.schemas import conversion
    from backend.store import documents as stored

    with command_context.told(as_json):
        held = [
            conversion.document(one) for one in stored.listing(command_context.open_home().database)
        ]
        if as_json:
            command_context.print_json(conversion.listed(held))
        else:
            rendering.documents(command_context.console(), held)


def failures(as_json: Json = False) -> None:
    """List what could not be read, and why."""
    from backend.cli import rendering
    from backend.schemas import conversion
    from backend.store import failures as stored

    with command_context.told(as_json):
        failed = [
            conversion.failure(one) for one in stored.listing(command_context.open_home().database)
        ]
        if as_json:
            command_context.print_json(conversion.listed(failed))
        elif failed:
            rendering.failures(command_context.console(), failed)
        else:
            command_context.console().print("Everything could be read.")


def doctor(as_json: Json = False) -> None:
    """Say what is set up, what works, and what to do about the rest."""
    from backend.cli import rendering
    from backend.cli.doctor import examine
    from backend.schemas import conversion

    with command_context.told(as_json):
        found = examine(command_context.open_home())
        if as_json:
            command_context.print_json(conversion.listed(found))
        else:
            rendering.checks(command_context.console(), found)
    if any(check.state == "failed" for check in found):
        raise typer.Exit(command_context.FAILED)


def reindex(
    model: Annotated[
        str | None,
        typer.Option(help="The embedding model to change to, as QUARRY_EMBEDDING_MODEL names it."),
    ] = None,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Build the index anew for the model it has: cut, embedded, written."
        ),
    ] = False,
    rate: Annotated[
        float | None, typer.Option(min=0.1, help="At most so many chunks a second, on average.")
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Only say how far it is.")] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Remove what has been built so far.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Build the index for another embedding model, while the old one is searched.

    Nothing is fetched: documents are cut and embedded anew from what is kept of them. It can be stopped at any
    moment; the same command, or plain `quarry reindex`, goes on.
    """
    from backend.cli import rebuild_output
    from backend.cli import reindex as commands

    if sum([model is not None, rebuild, status, abandon]) > 1:
        raise typer.BadParameter("give one of --model, --rebuild, --status and --abandon")
    with command_context.told(as_json):
        container = command_context.open_home()
        if status:
            found = commands.status(container)
            command_context.print_wire(found) if as_json else rebuild_output.reindex_status(
                command_context.console(), found
            )
            return
        if abandon:
            given_up = commands.abandoned(container)
            command_context.print_wire(given_up) if as_json else rebuild_output.abandoned(
                command_context.console(), given_up
            )
            return
        done = _reindexed(container, model, rebuild, rate)
        command_context.print_wire(done) if as_json else rebuild_output.rebuilt(
            command_context.console(), done
        )
    if done.missing:
        raise typer.Exit(command_context.DONE_WITH_FAILURES)


def _reindexed(
    container: "Container", model: str | None, rebuild: bool, rate: float | None
) -> "RebuiltWire":
    from backend.cli import rebuild_output
    from backend.cli import reindex as commands
    from indexing.rebuild.events import RateLimit

    if model is not None:
        steps = commands.change_model(container, model, RateLimit(rate))
    elif rebuild:
        steps = commands.rebuild(container, RateLimit(rate))
    else:
        steps = commands.go_on(container, RateLimit(rate))
    with rebuild_output.steps(command_context.console(sys.stderr)) as shown:
        return commands.encoded(container, shown.rebuilding(steps))


def move(
    to: Annotated[str, typer.Option(metavar="ENGINE", help="opensearch or embedded.")],
    as_json: Json = False,
) -> None:
    """Copy the index to the other engine as it is; nothing is embedded."""
    from backend.cli import move, rebuild_output

    with command_context.told(as_json):
        if to not in ("opensearch", "embedded"):
            raise typer.BadParameter("write opensearch or embedded", param_hint="--to")
        container = command_context.open_home()
        engine: EngineName = "opensearch" if to == "opensearch" else "embedded"
        with rebuild_output.steps(command_context.console(sys.stderr)) as shown:
            done = move.encoded(engine, shown.moving(move.move_index(container, engine)))
        command_context.print_wire(done) if as_json else rebuild_output.moved(
            command_context.console(), done
        )
