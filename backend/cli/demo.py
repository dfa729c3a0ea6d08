"""`quarry demo`: the sample handbook, three questions, and what to type next."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from backend.cli import command_line
from backend.cli.ask import ask_in_terminal, note_model
from backend.cli.sync import print_sync_report, show_progress
from backend.composition.index import EmbeddingModel
from backend.container import Container
from backend.sample import handbook
from backend.settings import variable
from backend.store.database import Database
from backend.store.sync import sources
from backend.store.sync.sources import Source
from backend.sync.due_work import SyncParts
from backend.sync.foreground_run import sync
from connectors.access import Readers
from connectors.errors import ConflictError
from indexing.ingestion.progress import Report

NAME = "handbook"
QUESTIONS = (
    "Where can I leave my bike at the Leeds office?",
    "What should a customer do when the scanner shows QX-4031?",
    "在宅勤務は週に何日までできますか。",
)
NEXT = (
    "serve",
    'ask "Am I allowed to travel first class on a five-hour train ride?"',
    'search "PN-88-1420-B" --explain',
    'ask "What is the salary band of a senior engineer?" --as group:finance',
    "add folder ~/Documents",
    "doctor",
)


def run_demo(container: Container, console: Console) -> None:
    """Run the demo, question by question.

    Raises:
        ActionRequiredError, TemporarilyUnavailableError: what stands in the way.
    """
    console.print(f"Quarry keeps its state in {container.home}", markup=False, soft_wrap=True)
    spent: dict[str, float] = {}
    with (
        _timed(spent, "model"),
        console.status("Loading the model (the first time: converting it)"),
    ):
        _warm(container.embedding)
    with _timed(spent, "sync"):
        _sync(container.sources, console)
    for number, question in enumerate(QUESTIONS, start=1):
        console.print()
        console.print(question, style="bold cyan", markup=False)
        with _timed(spent, f"answer {number}"):
            ask_in_terminal(container, question, Readers.of(), (), console)
    note_model(container.chat, console)
    console.print()
    timings = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in spent.items())
    console.print(timings, style="dim", markup=False)
    console.print("\nTo go on, type:")
    for command in NEXT:
        console.print(f"  {_this_command()} {command}", markup=False, soft_wrap=True)


@contextmanager
def _timed(spent: dict[str, float], part: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    spent[part] = time.perf_counter() - began


def _warm(embedding: EmbeddingModel) -> None:
    """Convert the model if that was never done, and learn what it understands."""
    embedding.language_support.language("English")


def _sync(parts: SyncParts, console: Console) -> None:
    source = _source(parts.database)
    connector, pipeline = parts.connector(source), parts.pipeline(source)
    with show_progress(console) as bars:
        for step in sync(parts.database, source, connector, pipeline):
            if isinstance(step, Report):
                report = step
            else:
                bars.show(step)
    print_sync_report(console, source.name, report, None)


def _source(database: Database) -> Source:
    """Return the handbook's source; it is added if it is not there."""
    settings = {"path": str(handbook())}
    for source in sources.list_sources(database):
        if source.settings.get("path") == settings["path"]:
            return source
        if source.name == NAME:
            raise ConflictError(
                f"There is a source named {NAME!r} already, of another folder. Run the demo in a home"
                f" of its own: {variable('home')}=/tmp/quarry-demo {_this_command()} demo"
            )
    return sources.add(database, NAME, "folder", settings)


def _this_command() -> str:
    """Return the command as it was typed; within the working folder without what leads there."""
    typed = Path(sys.argv[0]).absolute()
    return str(typed.relative_to(Path.cwd())) if typed.is_relative_to(Path.cwd()) else typed.name


def demo() -> None:
    """Index the sample company handbook and answer three questions."""
    with command_line.cli_errors(as_json=False):
        run_demo(command_line.open_home(), command_line.console())
