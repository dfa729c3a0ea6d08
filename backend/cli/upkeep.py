"""What the owner of the machine does with documents and the index."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli import frame
from backend.cli.frame import Json

if TYPE_CHECKING:
    from backend import wire
    from backend.assembly import Engine, Quarry
    from backend.commands.reindexing import RebuiltWire
    from backend.commands.rendering import Bars
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
    from backend import encoding
    from backend.commands import rendering
    from backend.store import sources as stored
    from indexing.ingestion.pipeline import EmptyListing

    with frame.told(as_json):
        quarry = frame.open_home()
        chosen = [stored.find(quarry.database, name)] if name else stored.listing(quarry.database)
        if not chosen:
            frame.fail("There is no source yet. Add one: quarry add folder PATH", as_json)
        with rendering.progress(frame.console(sys.stderr)) as bars:
            when_empty = EmptyListing.ACCEPT if accept_empty else EmptyListing.REFUSE
            done = [_sync_one(quarry, source.name, when_empty, bars) for source in chosen]
        if as_json:
            frame.print_json(encoding.listed(done))
        else:
            for one in done:
                rendering.synced(frame.console(), one)
    if any(one.error for one in done):
        raise typer.Exit(frame.FAILED)
    if any(one.unreadable_count for one in done):
        raise typer.Exit(frame.DONE_WITH_FAILURES)


def _sync_one(
    quarry: "Quarry", name: str, when_empty: "EmptyListing", bars: "Bars"
) -> "wire.SyncWire":
    """One source; what stops it does not stop the others."""
    from backend import encoding
    from backend.store import sources as stored
    from backend.sync.runner import sync as run
    from connectors.errors import AskTheOwner, RetryLater
    from indexing.ingestion.progress import Report

    def synced(quarry: "Quarry") -> Report:
        source, report = stored.find(quarry.database, name), Report()
        connector, pipeline = quarry.connector(source), quarry.pipeline(source)
        for step in run(quarry.database, source, connector, pipeline, when_empty):
            if isinstance(step, Report):
                report = step
            else:
                bars.show(step)
        return report

    report, error = Report(), None
    try:
        report = frame.through_a_switch(quarry, synced)
    except (AskTheOwner, RetryLater) as failure:
        error = str(failure)
    return encoding.synced(name, report, error)


def documents(as_json: Json = False) -> None:
    """List every document that is held, with who may read it."""
    from backend import encoding
    from backend.commands import rendering
    from backend.store import documents as stored

    with frame.told(as_json):
        held = [encoding.document(one) for one in stored.listing(frame.open_home().database)]
        if as_json:
            frame.print_json(encoding.listed(held))
        else:
            rendering.documents(frame.console(), held)


def failures(as_json: Json = False) -> None:
    """List what could not be read, and why."""
    from backend import encoding
    from backend.commands import rendering
    from backend.store import failures as stored

    with frame.told(as_json):
        failed = [encoding.failure(one) for one in stored.listing(frame.open_home().database)]
        if as_json:
            frame.print_json(encoding.listed(failed))
        elif failed:
            rendering.failures(frame.console(), failed)
        else:
            frame.console().print("Everything could be read.")


def doctor(as_json: Json = False) -> None:
    """Say what is set up, what works, and what to do about the rest."""
    from backend import encoding
    from backend.commands import rendering
    from backend.commands.doctor import examine

    with frame.told(as_json):
        found = examine(frame.open_home())
        if as_json:
            frame.print_json(encoding.listed(found))
        else:
            rendering.checks(frame.console(), found)
    if any(check.state == "failed" for check in found):
        raise typer.Exit(frame.FAILED)


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
    from backend.commands import reindexing as commands
    from backend.commands import showing

    if sum([model is not None, rebuild, status, abandon]) > 1:
        raise typer.BadParameter("give one of --model, --rebuild, --status and --abandon")
    with frame.told(as_json):
        quarry = frame.open_home()
        if status:
            found = commands.status(quarry)
            frame.print_wire(found) if as_json else showing.reindex_status(frame.console(), found)
            return
        if abandon:
            given_up = commands.abandoned(quarry)
            frame.print_wire(given_up) if as_json else showing.abandoned(frame.console(), given_up)
            return
        done = _reindexed(quarry, model, rebuild, rate)
        frame.print_wire(done) if as_json else showing.rebuilt(frame.console(), done)
    if done.missing:
        raise typer.Exit(frame.DONE_WITH_FAILURES)


def _reindexed(
    quarry: "Quarry", model: str | None, rebuild: bool, rate: float | None
) -> "RebuiltWire":
    from backend.commands import reindexing as commands
    from backend.commands import showing
    from indexing.rebuild.events import Pace

    if model is not None:
        steps = commands.change_model(quarry, model, Pace(rate))
    elif rebuild:
        steps = commands.rebuild(quarry, Pace(rate))
    else:
        steps = commands.go_on(quarry, Pace(rate))
    with showing.steps(frame.console(sys.stderr)) as shown:
        return commands.encoded(quarry, shown.rebuilding(steps))


def move(
    to: Annotated[str, typer.Option(metavar="ENGINE", help="opensearch or embedded.")],
    as_json: Json = False,
) -> None:
    """Copy the index to the other engine as it is; nothing is embedded."""
    from backend.commands import moving, showing

    with frame.told(as_json):
        if to not in ("opensearch", "embedded"):
            raise typer.BadParameter("write opensearch or embedded", param_hint="--to")
        quarry = frame.open_home()
        engine: Engine = "opensearch" if to == "opensearch" else "embedded"
        with showing.steps(frame.console(sys.stderr)) as shown:
            done = moving.encoded(engine, shown.moving(moving.move_index(quarry, engine)))
        frame.print_wire(done) if as_json else showing.moved(frame.console(), done)
