"""Terminal output of `quarry reindex` and `quarry move`."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from backend.cli.command_line import to_safe_text
from backend.schemas.index import MoveReport, ReindexAbandoned, ReindexReport, ReindexStatus
from indexing.rebuild.copy_index import CopyEvent, CopyProgress, CopyResult
from indexing.rebuild.events import RebuildEvent, RebuildProgress, RebuildResult, WaitingForSync


@contextmanager
def show_progress(console: Console) -> Iterator["ProgressDisplay"]:
    """Show one progress bar; what is waited for is printed where there is no terminal, too."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("documents [dim]{task.fields[detail]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        yield ProgressDisplay(console, bar)


class ProgressDisplay:
    """Shows the steps of a reindex or a move, and returns its result."""

    def __init__(self, console: Console, bar: Progress) -> None:
        self._console = console
        self._bar = bar
        self._task = bar.add_task("starting", total=None, detail="")
        self._last_reason = ""

    def follow_reindex(self, steps: Iterable[RebuildEvent]) -> RebuildResult:
        for step in steps:
            match step:
                case RebuildResult():
                    return step
                case WaitingForSync(reason):
                    self._wait(reason)
                case RebuildProgress():
                    pace = f"{step.chunks:,} chunks, {step.rate:.1f}/s{_left(step.seconds_left)}"
                    self._show("building", step.documents, step.total, pace)
        raise ValueError("the reindex ended without a result")

    def follow_move(self, steps: Iterable[CopyEvent]) -> CopyResult:
        for step in steps:
            match step:
                case CopyResult():
                    return step
                case WaitingForSync(reason):
                    self._wait(reason)
                case CopyProgress():
                    self._show("copying", step.documents, step.total, f"{step.chunks:,} chunks")
        raise ValueError("the move ended without a result")

    def _show(self, stage: str, done: int, total: int, detail: str) -> None:
        self._bar.update(self._task, description=stage, completed=done, total=total, detail=detail)

    def _wait(self, reason: str) -> None:
        if reason != self._last_reason:
            self._console.print(to_safe_text(f"Waiting for: {reason}"))
            self._last_reason = reason


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f", {timedelta(seconds=round(seconds))} left"


def print_status(console: Console, found: ReindexStatus) -> None:
    active = found.active.model if found.active else "none yet"
    console.print(Text(f"Model of the index: {active}"))
    if found.building is None:
        console.print("No other index is being built.")
        return
    state = "being built" if found.running else "unfinished, and no process works on it"
    console.print(
        Text(
            f"An index for the model {found.building.model} is {state}:"
            f" {found.documents:,} of {found.total:,} documents"
        )
    )
    if not found.running:
        console.print("To continue: quarry reindex. To remove it: quarry reindex --abandon.")


def print_abandoned(console: Console, removed: ReindexAbandoned) -> None:
    if removed.abandoned:
        console.print(
            Text(f"Removed the unfinished index for the model {removed.abandoned.model}.")
        )
    else:
        console.print("No index was being built.")


def print_reindexed(console: Console, done: ReindexReport) -> None:
    console.print(
        Text(
            f"The index is now for the model {done.model}: {done.documents:,} documents reindexed"
            f" ({done.chunks:,} chunks){_describe_copied(done.copied)} in {done.seconds:.1f} s"
        )
    )
    for one in done.missing:
        text = to_safe_text(f"{one.document_id}: {one.reason}")
        console.print(Text.assemble(("  missing  ", "yellow"), text))
    if done.advice:
        console.print(Text(f"  → {done.advice}"))


def _describe_copied(documents: int) -> str:
    return f", {documents:,} copied with new words" if documents else ""


def print_moved(console: Console, done: MoveReport) -> None:
    console.print(
        Text(
            f"Copied {done.copied:,} documents, deleted {done.deleted:,}; both indexes have"
            f" {done.documents:,} documents in {done.chunks:,} chunks."
        )
    )
    console.print(
        Text(
            f"Of {done.asked} test queries, the ten best results agree to {done.words:.1%} by keywords and"
            f" {done.vectors:.1%} by vectors."
        )
    )
    console.print(Text(f"  → {done.advice}"))
