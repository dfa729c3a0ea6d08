"""The commands of `quarry`, and what they share: options, opening the home, printing, errors, exit codes."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from connectors.errors import (
    ActionRequiredError,
    HandledError,
    QuarryError,
    TemporarilyUnavailableError,
)
from connectors.text_cleaning import CONTROLS, REPLACEMENT
from indexing.runtime.deadline import DeadlineExceededError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console
    from rich.text import Text

    from backend.container import Container, HomeDatabase
    from backend.store.database import Database
    from backend.store.owner import ConversationOwner
    from connectors.access import Readers

Done = TypeVar("Done")

FAILED, DONE_WITH_FAILURES, TRY_LATER = 1, 3, 75
"""Exit codes, the first also of Ctrl-C. Wrong use exits with 2, by typer. The last is EX_TEMPFAIL of sysexits.h."""
EXIT_CODES: Mapping[type[Exception], int] = MappingProxyType(
    {
        TemporarilyUnavailableError: TRY_LATER,
        ActionRequiredError: FAILED,
        # The sentence that goes with it asks for another setting, not for patience.
        DeadlineExceededError: FAILED,
        HandledError: FAILED,
    }
)
"""What each expected error that ends a command exits with. Their statuses are `STATUSES` of `backend.api.problem_details`."""
_STEERING = re.compile(f"[{CONTROLS}\u200e\u200f]")
"""What a terminal may interpret, the marks of direction as well: few terminals lay out Hebrew or Arabic by them."""
UNBROKEN = 10_000
"""Columns; more than any line has."""

SourceName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the source.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
As = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="READER",
        help="Act as this reader, such as user:ann@example.com or group:finance. May be"
        " repeated. Default: public documents, and your own files where there are no accounts.",
    ),
]

_COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "demo": ("demo:demo", "Index the sample company handbook and answer three questions."),
        "sync": ("sync:sync", "Bring the index up to date with the sources."),
        "documents": ("documents:documents", "List all indexed documents and who may read them."),
        "failures": ("documents:failures", "List the documents that could not be read, and why."),
        "doctor": (
            "doctor:doctor",
            "Check what is set up and what works, and say how to fix the rest.",
        ),
        "reindex": (
            "reindex:reindex",
            "Build the index for another embedding model, while the old one is searched.",
        ),
        "move": ("move:move", "Copy the index to the other engine, without embedding anything."),
        "search": (
            "search:search",
            "Find the documents that match best, each by its best passage.",
        ),
        "ask": (
            "ask:ask",
            "Answer a question with sources; without a language model, show the passages that come closest.",
        ),
        "research": (
            "research:research",
            "Divide a question into tasks, search for each, and report what was found with its sources.",
        ),
        "cite": (
            "cite:cite",
            "Write numbered references into a text: which of its sentences each source supports.",
        ),
        "show": ("show:show", "Show a document: its sections, their places, and who may read it."),
        "explain": (
            "explain:explain",
            "Say why somebody does not find a document: what it requires, and what they hold.",
        ),
        "look": (
            "look:look",
            "Look as the administrator whether a document exists, and who may read it.",
        ),
        "audit": (
            "audit:audit",
            "List what was done to sources, people, groups and API tokens: by whom, when, and with what outcome.",
        ),
        "serve": (
            "serve:serve",
            "Serve the pages and the HTTP API: for the person at this machine, or for people with accounts.",
        ),
        "link": ("link:link", "Print a link that lets a browser in to quarry serve."),
        "tokens": (
            "tokens:app",
            "Create, list and revoke the API tokens that programs send to quarry serve.",
        ),
        "programs": (
            "programs:app",
            "List, disconnect and delete the programs that people connected to their accounts.",
        ),
        "users": (
            "users:app",
            "Invite people, and change, disable or verify their accounts.",
        ),
        "groups": ("groups:app", "Create groups of people and manage their members."),
        "sets": ("sets:app", "Gather documents in named sets, to search in."),
        "memories": (
            "memories:app",
            "List, add, edit and remove what you asked Quarry to remember.",
        ),
        "knowledge": (
            "knowledge:app",
            "List, search, read, edit, delete, export and import what research has found out.",
        ),
        "models": (
            "models:app",
            "Set the language models that write answers, and see what they were used for.",
        ),
        "web": (
            "web:app",
            "Switch the open web on, set its providers, search it, read a page.",
        ),
        "slack": ("slack:app", "Answer in Slack (extra 'slack'), and check whether that works."),
        "worker": ("worker:worker", "Sync and index in the background, woken over the broker."),
        "beat": ("worker:beat", "Notify the workers over the broker of due runs. One is enough."),
        "add": ("sources:adding", "Add a source."),
        "sources": ("sources:app", "List, change and control the sources."),
        "eval": ("evaluate:app", "Score the search on questions with known answers."),
        "feedback": (
            "feedback:app",
            "Create evaluation questions from user feedback.",
        ),
        "mcp": (
            "mcp:mcp",
            "Serve the documents to an agent on this machine, by the Model Context Protocol (standard input and output).",
        ),
        "credentials": (
            "credentials:app",
            "Manage the keys that encrypt the sources' credentials.",
        ),
    }
)
"""Where each command is, below this package, and its line in the help."""

GRACE_SECONDS = 3.5
"""Seconds in which threads may come to the end of a step. After that the process ends as by kill -9, which loses
nothing: the next run continues from the last checkpoint."""
_SHOW_CURSOR = "\r\x1b[2K\x1b[?25h"


@contextmanager
def cli_errors(as_json: bool) -> Iterator[None]:
    """End a command that an expected error or Ctrl-C stops with one sentence and an exit code."""

    report = _CallOnce(lambda: _print_failure(_error_message(KeyboardInterrupt()), as_json))
    try:
        with end_promptly(report, FAILED):
            yield
    except KeyboardInterrupt:
        report()
        raise typer.Exit(FAILED) from None
    except (QuarryError, DeadlineExceededError) as error:
        _print_failure(_error_message(error), as_json)
        raise typer.Exit(find_exit_code(error)) from error


def find_exit_code(error: QuarryError | DeadlineExceededError) -> int:
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def _error_message(error: BaseException) -> str:
    match error:
        case QuarryError(advice=str(advice)):
            return f"{error} {advice}"
        case TemporarilyUnavailableError():
            return f"{error} Try again in {error.retry_after.total_seconds():.0f} s."
        case DeadlineExceededError():
            return (
                "The time limit was reached. To allow more time, set QUARRY_SEARCH_SECONDS or"
                " QUARRY_ANSWER_SECONDS higher."
            )
        case KeyboardInterrupt():
            return "Stopped. What was done is kept; the same command continues from there."
        case _:
            return str(error)


def fail(message: str, as_json: bool) -> NoReturn:
    _print_failure(message, as_json)
    raise typer.Exit(FAILED)


def _print_failure(message: str, as_json: bool) -> None:
    if as_json:
        print_json({"error": message})
    else:
        console(sys.stderr).print(to_safe_text(message, "red"))


def console(stream: Any = None) -> "Console":
    """Make a console that wraps lines for a terminal only, not for a file or another program."""
    from rich.console import Console

    file = stream or sys.stdout
    width = None if file.isatty() else UNBROKEN
    return Console(file=file, width=width, highlight=False, emoji=False)


def to_safe_text(text: str, style: str = "") -> "Text":
    """Return text with its control characters replaced, so that a terminal does not interpret them."""
    from rich.text import Text

    return Text(_STEERING.sub(REPLACEMENT, text), style)


def print_lines(lines: Iterable[str]) -> None:
    """Write lines that have their line ends to standard output; on a terminal their control characters are replaced."""
    is_terminal = sys.stdout.isatty()
    for line in lines:
        text = line.rstrip("\r\n")
        shown = _STEERING.sub(REPLACEMENT, text) if is_terminal else text
        sys.stdout.write(shown + line[len(text) :])


def print_json(value: object) -> None:
    """Print a JSON document, in which what a terminal may interpret is escaped."""
    import json

    document = json.dumps(value, ensure_ascii=False, indent=2)
    sys.stdout.write(_STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", document) + "\n")


def print_done(name: str, what: str, as_json: bool) -> None:
    """Say what was done to something of a name."""
    if as_json:
        print_json({"name": name, "done": what})
    else:
        console().print(to_safe_text(f"{name} {what}."))


def print_model(value: "BaseModel") -> None:
    print_json(value.model_dump(mode="json"))


def open_home() -> "Container":
    from pydantic import ValidationError

    from backend.container import Container
    from backend.settings import Settings, variable

    try:
        return Container(Settings())
    except ValidationError as error:
        faults = "; ".join(
            f"{variable(str(fault['loc'][0]))}: {fault['msg']}" for fault in error.errors()
        )
        raise typer.BadParameter(f"invalid setting: {faults}") from error


def retry_on_index_switch(container: "Container", work: Callable[["Container"], Done]) -> Done:
    """Call `work`; once more where the index was switched to another version meanwhile."""
    from indexing.index.versions import IndexVersionReplacedError

    try:
        return work(container)
    except IndexVersionReplacedError:
        return work(open_home())


def readers(tokens: list[str] | None) -> "Readers":
    from connectors.access import Readers

    try:
        return Readers.of(*tokens or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--as") from error


def resolve_asker(known: "HomeDatabase", own: "Readers", tokens: list[str] | None) -> "Readers":
    """Return what the person who asks may read now: the owner of the machine, unless `--as` names tokens of somebody else."""
    return known.resolve_readers(own) if tokens else known.resolve_readers_of_owner(own)


def find_owner(database: "Database", tokens: list[str] | None) -> "ConversationOwner | None":
    """Return whose conversations and memories the asker's are: the owner's of the machine, who has them only where there
    are no accounts, unless `--as` names tokens of somebody else."""
    from backend.store.accounts.people import has_people
    from backend.store.owner import ConversationOwner

    return None if tokens or has_people(database) else ConversationOwner(None)


class LazyGroup(TyperGroup):
    """Import the module of a command only when that command is called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {
            name: TyperCommand(name, help=summary) for name, (_, summary) in _COMMANDS.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, _load(name) if name and listed else listed, rest


app = typer.Typer(
    cls=LazyGroup,
    name="quarry",
    help="Find what a company knows, and answer with citations that can be checked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from backend.version import describe_version

        typer.echo(describe_version())
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options that stand before the command."""
    del version


def main() -> None:
    app()


def _load(name: str) -> Any:
    module, attribute = _COMMANDS[name][0].split(":")
    found = getattr(import_module(f"backend.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        # All help looks alike; the boxes of Rich leave narrow terminals little of a line.
        found.rich_markup_mode = None
        return typer.main.get_group(found)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name)(found)
    return typer.main.get_command(single)


@contextmanager
def end_promptly(report: Callable[[], object], exit_code: int) -> Iterator[None]:
    """Let Ctrl-C within the block raise KeyboardInterrupt, and end the process soon whatever its threads do.

    A second Ctrl-C ends it at once.

    Args:
        report: says that the command has stopped, if nobody has said so yet; may be called by another thread
            while the main thread calls it too.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # a server or an outer block handles it
        return
    interruption = _Interruption(report, exit_code)
    interruption.install()
    try:
        yield
    finally:
        interruption.uninstall()


def say_stopping() -> None:
    """Say on standard error, if there is one, that the command is about to end."""
    with suppress(OSError, ValueError):
        print("Stopping…", file=sys.stderr, flush=True)


class _CallOnce:
    """A call that is made once, whoever asks first; others return when it is done.

    The lock is reentrant: a second Ctrl-C interrupts the main thread within its own call.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._lock = threading.RLock()
        self._is_called = False

    def __call__(self) -> None:
        with self._lock:
            if not self._is_called:
                self._is_called = True
                self._call()


class _Interruption:
    def __init__(self, report: Callable[[], object], exit_code: int) -> None:
        self._report = report
        self._exit_code = exit_code
        self._timer: threading.Timer | None = None

    def install(self) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._handle)

    def uninstall(self) -> None:
        """Leave Ctrl-C as it was, unless it was pressed: then threads may hold up the end of the process."""
        if self._timer is None and signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _handle(self, number: int, frame: object) -> None:
        del number, frame
        if self._timer is not None:
            self._end()
        self._timer = threading.Timer(GRACE_SECONDS, self._end)
        self._timer.daemon = True
        self._timer.start()
        say_stopping()
        raise KeyboardInterrupt

    def _end(self) -> None:
        with suppress(OSError, ValueError):
            if sys.__stderr__ is not None and sys.__stderr__.isatty():
                sys.__stderr__.write(_SHOW_CURSOR)
            self._report()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(self._exit_code)


def parse_moment(text: str | None, option: str) -> datetime | None:
    """Return the moment that an ISO date or time names; a day begins at midnight here.

    Raises:
        typer.BadParameter: it is neither.
    """
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(
            f"{text!r} is not a day such as 2026-03-31", param_hint=option
        ) from error


def parse_end(text: str | None, option: str) -> datetime | None:
    """Return the end of the day that is named; a time of day is taken as it is."""
    moment = parse_moment(text, option)
    if moment is None or text is None:
        return None
    return moment + timedelta(days=1) if len(text.strip()) <= len("2026-03-31") else moment
