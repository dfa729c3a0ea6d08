"""`quarry memories`: what the owner of the machine asked Quarry to remember."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.conversations.memory_service import MemoryService
from backend.schemas.base import dump_all
from backend.schemas.memory import MemoryResponse
from connectors.errors import ConflictError

app = typer.Typer(
    help="List, add, edit and remove what you asked Quarry to remember.", no_args_is_help=True
)

MemoryId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the memory: see quarry memories list.")
]
Text = Annotated[
    str, typer.Argument(metavar="TEXT", help="What is to be remembered; - reads standard input.")
]


@app.command(name="list")
def list_memories(as_json: Json = False) -> None:
    """List what is remembered, the newest first."""
    with command_line.cli_errors(as_json):
        found = list(map(MemoryResponse.from_memory, _open_service().list_all()))
        if as_json:
            command_line.print_json(dump_all(found))
        elif found:
            command_line.console().print(_make_table(found))
        else:
            command_line.console().print(
                "Nothing is remembered yet. To add something: quarry memories add TEXT"
            )


@app.command()
def add(text: Text, as_json: Json = False) -> None:
    """Remember something: answers to your questions may rest on it."""
    with command_line.cli_errors(as_json):
        added = _open_service().add(_read_text(text))
        _report(MemoryResponse.from_memory(added), "is remembered", as_json)


@app.command()
def edit(memory_id: MemoryId, text: Text, as_json: Json = False) -> None:
    """Change what is remembered."""
    with command_line.cli_errors(as_json):
        changed = _open_service().edit(memory_id, _read_text(text))
        _report(MemoryResponse.from_memory(changed), "is changed", as_json)


@app.command()
def remove(memory_id: MemoryId, as_json: Json = False) -> None:
    """Remove what is remembered. Answers that rest on it are no longer shown."""
    with command_line.cli_errors(as_json):
        _open_service().delete(memory_id)
        if as_json:
            command_line.print_json({"id": memory_id, "done": "is removed"})
        else:
            command_line.console().print(to_safe_text(f"{memory_id} is removed."))


def _open_service() -> MemoryService:
    """Open the memories of the machine's owner.

    Raises:
        ConflictError: there are accounts, and each person's memories are theirs alone.
    """
    container = command_line.open_home()
    owner = command_line.find_owner(container.database, None)
    if owner is None:
        raise ConflictError(
            "There are accounts here, and what is remembered belongs to each person alone: they see and change it on the page /memories."
        )
    return MemoryService(database=container.database, owner=owner)


def _read_text(given: str) -> str:
    return sys.stdin.read() if given == "-" else given


def _report(memory: MemoryResponse, done: str, as_json: bool) -> None:
    if as_json:
        command_line.print_model(memory)
    else:
        command_line.console().print(to_safe_text(f"{memory.id} {done}."))


def _make_table(memories: Sequence[MemoryResponse]) -> Table:
    table = Table("id", "changed", "text", box=None, header_style="dim")
    for one in memories:
        changed = f"{one.updated_at.astimezone():%Y-%m-%d}"
        table.add_row(to_safe_text(one.id), changed, to_safe_text(one.text))
    return table
