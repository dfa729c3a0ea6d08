"""What every command does around its work: it opens the home, prints, and ends in one sentence and an exit code."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from backend.container import Container
    from connectors.access import Readers

Done = TypeVar("Done")

FAILED, DONE_WITH_FAILURES = 1, 3
UNBROKEN = 10_000
"""Columns, more than a line has."""

SourceName = Annotated[str, typer.Argument(metavar="NAME", help="Of the source.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
As = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="READER",
        help="Ask as a holder of this reader token, such as user:ann@example.com or"
        " group:finance. May be repeated. Without it: public only.",
    ),
]


@contextmanager
def told(as_json: bool) -> Iterator[None]:
    """Whatever stops a command ends in one sentence and an exit code."""
    from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
    from indexing.runtime.deadline import DeadlineExceededError

    try:
        yield
    except ActionRequiredError as error:
        fail(str(error), as_json)
    except TemporarilyUnavailableError as error:
        fail(f"{error} Try again in {error.retry_after.total_seconds():.0f} s.", as_json)
    except DeadlineExceededError:
        fail(
            "The time for this was up. Set QUARRY_SEARCH_SECONDS or QUARRY_ANSWER_SECONDS higher"
            " to allow more.",
            as_json,
        )
    except KeyboardInterrupt:
        fail("Stopped. What was done is kept; the same command goes on from there.", as_json)


def fail(message: str, as_json: bool) -> NoReturn:
    if as_json:
        print_json({"error": message})
    else:
        console(sys.stderr).print(message, style="red", markup=False, highlight=False)
    raise typer.Exit(FAILED)


def console(stream: Any = None) -> "Console":
    """Breaks lines for a terminal; a file or another program is given each whole."""
    from rich.console import Console

    file = stream or sys.stdout
    width = None if file.isatty() else UNBROKEN
    return Console(file=file, width=width, highlight=False, emoji=False)


def print_json(value: object) -> None:
    import json

    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_wire(value: "BaseModel") -> None:
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
        raise typer.BadParameter(f"a setting is not valid: {faults}") from error


def through_a_switch(container: "Container", work: Callable[["Container"], Done]) -> Done:
    """Work on the home; once more where the index was switched to another index version in the middle of it."""
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
