"""What a person sees while the index is rebuilt or moved, and when that is done."""

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

from backend.cli.move import MovedWire
from backend.cli.reindex import AbandonedWire, RebuiltWire, StatusWire
from backend.cli.rendering import harmless
from indexing.rebuild.copy_index import CopyEvent, CopyProgress, CopyResult
from indexing.rebuild.events import RebuildEvent, RebuildProgress, RebuildResult, WaitingForSync


@contextmanager
def steps(console: Console) -> Iterator["Steps"]:
    """One bar for a change of the whole index; what is waited for is said where nobody looks, too."""
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("documents [dim]{task.fields[told]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        yield Steps(console, bar)


class Steps:
    """Shows the steps of a rebuild or a move, and gives back how it ended."""

    def __init__(self, console: Console, bar: Progress) -> None:
        self._console = console
        self._bar = bar
        self._task = bar.add_task("starting", total=None, told="")
        self._said = ""

    def rebuilding(self, told: Iterable[RebuildEvent]) -> RebuildResult:
        for step in told:
            match step:
                case RebuildResult():
                    return step
                case WaitingForSync(reason):
                    self._wait(reason)
                case RebuildProgress():
                    pace = f"{step.chunks:,} chunks, {step.rate:.1f}/s{_left(step.seconds_left)}"
                    self._show("building", step.documents, step.total, pace)
        raise ValueError("a rebuild ended without saying how")

    def moving(self, told: Iterable[CopyEvent]) -> CopyResult:
        for step in told:
            match step:
                case CopyResult():
                    return step
                case WaitingForSync(reason):
                    self._wait(reason)
                case CopyProgress():
                    self._show("copying", step.documents, step.total, f"{step.chunks:,} chunks")
        raise ValueError("a move ended without saying how")

    def _show(self, stage: str, done: int, total: int, told: str) -> None:
        self._bar.update(self._task, description=stage, completed=done, total=total, told=told)

    def _wait(self, reason: str) -> None:
        if reason != self._said:
            self._console.print(harmless(f"Waiting for this to end: {reason}"))
            self._said = reason


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f", {timedelta(seconds=round(seconds))} left"


def reindex_status(console: Console, found: StatusWire) -> None:
    active = found.active.model if found.active else "none yet"
    console.print(Text(f"The index is of the model: {active}"))
    if found.building is None:
        console.print("No other is being built.")
        return
    state = "being built" if found.running else "half built, and nobody works on it"
    console.print(
        Text(
            f"For the model {found.building.model} one is {state}:"
            f" {found.documents:,} of {found.total:,} documents"
        )
    )
    if not found.running:
        console.print("To go on: quarry reindex. To give it up: quarry reindex --abandon.")


def abandoned(console: Console, given_up: AbandonedWire) -> None:
    if given_up.abandoned:
        console.print(Text(f"Removed what was built for the model {given_up.abandoned.model}."))
    else:
        console.print("No index was being built.")


def rebuilt(console: Console, done: RebuiltWire) -> None:
    console.print(
        Text(
            f"The index is of the model {done.model}: {done.documents:,} documents indexed anew"
            f" ({done.chunks:,} chunks) in {done.seconds:.1f} s"
        )
    )
    for one in done.missing:
        told = harmless(f"{one.document_id}: {one.reason}")
        console.print(Text.assemble(("  missing  ", "yellow"), told))
    if done.advice:
        console.print(Text(f"  → {done.advice}"))


def moved(console: Console, done: MovedWire) -> None:
    console.print(
        Text(
            f"Copied {done.copied:,} documents, deleted {done.deleted:,}; both indexes hold"
            f" {done.documents:,} documents in {done.chunks:,} chunks."
        )
    )
    console.print(
        Text(
            f"Asked for {done.asked} of them, both name the same among the best ten: {done.words:.1%} by"
            f" words, {done.vectors:.1%} by vectors."
        )
    )
    console.print(Text(f"  → {done.advice}"))
