"""`quarry sync`: bring the index up to date with the sources."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from backend.cli import command_context
from backend.cli.command_context import Json

if TYPE_CHECKING:
    from backend.cli.rendering import ProgressBars
    from backend.container import Container
    from backend.schemas.run import SyncReport
    from indexing.ingestion.pipeline import EmptyListing


def sync(
    name: Annotated[str | None, typer.Argument(help="A source; by default all of them.")] = None,
    accept_empty: Annotated[
        bool,
        typer.Option(
            "--accept-empty",
            help="Accept that a source lists no documents, and delete those it had.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring the index up to date with the sources."""
    from backend.cli import rendering
    from backend.schemas.base import dump_all
    from backend.store import sources as stored
    from indexing.ingestion.pipeline import EmptyListing

    with command_context.cli_errors(as_json):
        container = command_context.open_home()
        chosen = (
            [stored.find(container.database, name)]
            if name
            else stored.list_sources(container.database)
        )
        if not chosen:
            command_context.fail("There is no source yet. Add one: quarry add folder PATH", as_json)
        with rendering.show_progress(command_context.console(sys.stderr)) as bars:
            when_empty = EmptyListing.ACCEPT if accept_empty else EmptyListing.REFUSE
            done = [_sync_one(container, source.name, when_empty, bars) for source in chosen]
        if as_json:
            command_context.print_json(dump_all(done))
        else:
            for one in done:
                rendering.print_sync_report(command_context.console(), one)
    if any(one.error for one in done):
        raise typer.Exit(command_context.FAILED)
    if any(one.unreadable_count for one in done):
        raise typer.Exit(command_context.DONE_WITH_FAILURES)


def _sync_one(
    container: "Container", name: str, when_empty: "EmptyListing", bars: "ProgressBars"
) -> "SyncReport":
    """One source; what stops it does not stop the others."""
    from backend.schemas.run import SyncReport
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
        report = command_context.retry_on_index_switch(container, synced)
    except (ActionRequiredError, TemporarilyUnavailableError) as failure:
        error = str(failure)
    return SyncReport.from_report(name, report, error)
