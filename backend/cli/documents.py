"""`quarry documents` and `quarry failures`: what is indexed, and what could not be read."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table

from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.schemas.base import dump_all
from backend.schemas.document import DocumentSummary
from backend.schemas.source import FailureResponse
from backend.store.accounts.membership_paths import name_groups
from backend.store.documents import documents as documents_store
from backend.store.sync import failures as failures_store
from indexing.text.normalization import pluralize


def documents(as_json: Json = False) -> None:
    """List all indexed documents and who may read them."""
    with command_line.cli_errors(as_json):
        database = command_line.open_home().database
        held = [
            DocumentSummary.model_validate(one) for one in documents_store.list_documents(database)
        ]
        if as_json:
            command_line.print_json(dump_all(held))
        else:
            names = name_groups(database, {token for one in held for token in one.readers})
            print_documents(command_line.console(), held, names)


def failures(as_json: Json = False) -> None:
    """List the documents that could not be read, and why."""
    with command_line.cli_errors(as_json):
        failed = [
            FailureResponse.model_validate(one)
            for one in failures_store.list_failures(command_line.open_home().database)
        ]
        if as_json:
            command_line.print_json(dump_all(failed))
        elif failed:
            print_failures(command_line.console(), failed)
        else:
            command_line.console().print("No document has failed.")


def print_documents(
    console: Console, held: Sequence[DocumentSummary], names: Mapping[str, str]
) -> None:
    table = Table(box=None, header_style="dim")
    table.add_column("id", overflow="fold", ratio=3)
    table.add_column("title", overflow="fold", ratio=2)
    table.add_column("readers", overflow="fold", ratio=2)
    table.add_column("chunks", justify="right")
    table.add_column("updated", no_wrap=True)
    for one in held:
        readers = ", ".join(_name_reader(each, names) for each in one.readers) or "nobody"
        table.add_row(
            to_safe_text(one.id),
            to_safe_text(one.title),
            to_safe_text(readers),
            str(one.chunks),
            _format_day(one.updated_at),
        )
    console.print(table)
    console.print(f"[dim]{pluralize(len(held), 'document')}[/dim]")


def _name_reader(token: str, names: Mapping[str, str]) -> str:
    """Name a reader, a group in quotes, which tell it from what is no name: it may be called `public` or `nobody`."""
    return f"“{names[token]}”" if token in names else token


def print_failures(console: Console, listed: Sequence[FailureResponse]) -> None:
    table = Table(box=None, header_style="dim")
    table.add_column("source")
    table.add_column("item", overflow="fold")
    table.add_column("reason", overflow="fold")
    table.add_column("tries", justify="right")
    for one in listed:
        table.add_row(
            to_safe_text(one.source),
            to_safe_text(one.item),
            to_safe_text(one.reason),
            str(one.tries),
        )
    console.print(table)


def _format_day(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d}" if moment else ""
