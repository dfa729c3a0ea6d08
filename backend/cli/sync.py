"""`quarry sync`: bring the index up to date with the sources."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
)
from rich.text import Text

from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.sources.status_text import describe_progress
from indexing.ingestion.progress import Progress as Step
from indexing.ingestion.progress import Report
from indexing.text.normalization import pluralize

if TYPE_CHECKING:
    from backend.container import Container
    from backend.sync.due_work import SyncParts
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
    from backend.schemas.base import dump_all
    from backend.schemas.run import SyncReport
    from backend.store.sync import sources as stored
    from indexing.ingestion.pipeline import EmptyListing

    with command_line.cli_errors(as_json):
        container = command_line.open_home()
        chosen = (
            [stored.find(container.database, name)]
            if name
            else stored.list_sources(container.database)
        )
        if not chosen:
            command_line.fail("There is no source yet. Add one: quarry add folder PATH", as_json)
        with show_progress(command_line.console(sys.stderr)) as bars:
            when_empty = EmptyListing.ACCEPT if accept_empty else EmptyListing.REFUSE
            done = [_sync_one(container, source.name, when_empty, bars) for source in chosen]
        if as_json:
            reports = (SyncReport.from_report(*one) for one in done)
            command_line.print_json(dump_all(reports))
        else:
            for one in done:
                print_sync_report(command_line.console(), *one)
    if any(error for _, _, error in done):
        raise typer.Exit(command_line.FAILED)
    if any(report.unreadable_count for _, report, _ in done):
        raise typer.Exit(command_line.DONE_WITH_FAILURES)


def _sync_one(
    container: "Container", name: str, when_empty: "EmptyListing", bars: "ProgressBars"
) -> "tuple[str, Report, str | None]":
    """Sync one source; what stops it does not stop the others: it is returned after name and report."""
    from backend.sources.service import SourceService
    from backend.store.sync import sources as stored
    from backend.sync.foreground_run import sync as run
    from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
    from indexing.ingestion.listings import DeletionNeedsApprovalError
    from indexing.ingestion.progress import Report

    def synced(parts: "SyncParts") -> Report:
        source, report = stored.find(parts.database, name), Report()
        connector, pipeline = parts.connector(source), parts.pipeline(source)
        for step in run(parts.database, source, connector, pipeline, when_empty):
            if isinstance(step, Report):
                report = step
            else:
                bars.show(step)
        return report

    report, error = Report(), None
    try:
        SourceService.of(container.sources).record_sync(name, when_empty)
        report = command_line.retry_on_index_switch(container, lambda home: synced(home.sources))
    except DeletionNeedsApprovalError as failure:
        error = f"{failure} To decide: quarry sources decision {name}"
    except (ActionRequiredError, TemporarilyUnavailableError) as failure:
        error = str(failure)
    return name, report, error


def print_sync_report(console: Console, source: str, one: Report, error: str | None) -> None:
    counts = [
        f"{value} {name}"
        for name, value in (
            ("indexed", one.documents),
            ("unchanged", one.unchanged),
            ("deleted", one.deleted),
            ("with new readers", one.amended),
            ("restored", one.restored),
            ("unreadable", one.unreadable_count),
        )
        if value
    ]
    if one.has_other_members:
        counts.append("who may read has changed")
    spent = ", ".join(f"{stage} {value:.1f} s" for stage, value in one.seconds.items())
    summary = ", ".join(counts) or ("not synced" if error else "nothing had changed")
    details = f" ({pluralize(one.chunks, 'chunk')}; {spent})" if one.chunks else ""
    console.print(to_safe_text(f"{source}: {summary}{details}"))
    for item in one.unreadable:
        console.print(
            Text.assemble(("  unreadable  ", "yellow"), to_safe_text(f"{item.item}: {item.reason}"))
        )
    if one.unreadable_count > len(one.unreadable):
        console.print(
            f"  and {one.unreadable_count - len(one.unreadable)} more. To list all: quarry failures"
        )
    if error:
        console.print(Text.assemble(("  failed  ", "red"), to_safe_text(error)))


@contextmanager
def show_progress(console: Console) -> Iterator["ProgressBars"]:
    """Show a bar for each stage, with the words of the pages; nothing where the console is no terminal."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.fields[source]}"),
        BarColumn(bar_width=20),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bars:
        yield ProgressBars(bars)


class ProgressBars:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[tuple[str, str], TaskID] = {}

    def show(self, step: Step) -> None:
        if self._bars.disable:
            # Nobody sees it: it is not put into words for each step, of which there may be many thousands.
            return
        key = (step.source, step.stage)
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task("", total=step.total, source=escape(step.source))
        self._bars.update(
            self._tasks[key],
            completed=step.done,
            total=step.total,
            description=escape(to_safe_text(describe_progress(step)).plain),
        )
