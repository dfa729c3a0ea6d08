"""The `quarry` command. Each command parses, calls one function, and prints.

Exit codes: 0 done; 1 failed, or nothing there that this asker may see; 2 wrong use; 3 done, with failures named.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

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
        "search": ("search:search", "Find the passages that match best."),
        "ask": ("ask:ask", "Answer a question, each sentence with its source."),
        "show": ("show:show", "Show a document: its sections, their places, and who may read it."),
        "audit": (
            "audit:audit",
            "List the actions on sources: who did what, when, and with what outcome.",
        ),
        "serve": (
            "serve:serve",
            "Serve the pages and the HTTP API, for the person at this machine.",
        ),
        "worker": ("worker:worker", "Sync and index in the background, woken over the broker."),
        "beat": ("worker:beat", "Tell the workers over the broker what is due. One is enough."),
        "add": ("sources:adding", "Add a source."),
        "sources": ("sources:app", "List, change and control the sources."),
        "eval": ("evaluate:app", "Score the search on questions with known answers."),
        "credentials": (
            "credentials:app",
            "Manage the keys that encrypt the sources' credentials.",
        ),
    }
)
"""Where each command is, below this package, and its line in the help."""


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
        return typer.main.get_group(found)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name)(found)
    return typer.main.get_command(single)
