"""What all commands share: options, opening the home, printing, errors and exit codes."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from connectors.errors import QuarryError, TemporarilyUnavailableError
from indexing.runtime.deadline import DeadlineExceededError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from backend.container import Container
    from connectors.access import Readers

Done = TypeVar("Done")

FAILED, DONE_WITH_FAILURES = 1, 3
EXIT_CODES: Mapping[type[BaseException], int] = MappingProxyType(
    {QuarryError: FAILED, DeadlineExceededError: FAILED, KeyboardInterrupt: FAILED}
)
"""Of the errors that a command expects. Wrong use exits with 2, by typer."""
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
        " repeated. Default: public documents only.",
    ),
]


@contextmanager
def cli_errors(as_json: bool) -> Iterator[None]:
    """End a command that an expected error stops with one sentence and an exit code."""
    try:
        yield
    except tuple(EXIT_CODES) as error:
        code = next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)
        fail(_error_message(error), as_json, code)


def _error_message(error: BaseException) -> str:
    match error:
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


def fail(message: str, as_json: bool, code: int = FAILED) -> NoReturn:
    if as_json:
        print_json({"error": message})
    else:
        console(sys.stderr).print(message, style="red", markup=False, highlight=False)
    raise typer.Exit(code)


def console(stream: Any = None) -> "Console":
    """A console that wraps lines for a terminal only, not for a file or another program."""
    from rich.console import Console

    file = stream or sys.stdout
    width = None if file.isatty() else UNBROKEN
    return Console(file=file, width=width, highlight=False, emoji=False)


def print_json(value: object) -> None:
    import json

    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


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
