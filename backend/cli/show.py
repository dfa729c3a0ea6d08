"""`quarry show`: one document as it was read."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from backend.access.document_readers import AllReaders
from backend.cli import command_line
from backend.cli.command_line import As, Json, to_safe_text
from backend.cli.named_documents import find_named
from backend.schemas.document import DocumentContent, PlaceResponse


def show(
    document: Annotated[
        str,
        typer.Argument(
            help="The id of the document, as shown by search; or its link, file name or title."
        ),
    ],
    readers: As = None,
    as_json: Json = False,
) -> None:
    """Show a document: its sections, their places, and who may read it."""
    own = command_line.readers(readers)
    with command_line.cli_errors(as_json):
        container = command_line.open_home()
        database = container.database
        asker = command_line.resolve_asker(container.home_database, own, readers)
        found = find_named(database, document, asker, as_json)
        if found is None:
            command_line.fail(f"There is no document {document!r} that you may read.", as_json)
        who = AllReaders(database).find(found.document.access)
        content = DocumentContent.from_stored(found, who)
        if as_json:
            command_line.print_model(content)
        else:
            print_document(command_line.console(), content, who.describe())


def print_document(console: Console, one: DocumentContent, readers: Sequence[str]) -> None:
    console.print(to_safe_text(one.title, "bold"))
    console.print(to_safe_text(one.link, "blue"), soft_wrap=True)
    date = f", {one.updated_at:%Y-%m-%d}" if one.updated_at else ""
    console.print(to_safe_text(f"{one.source}{date}, readable by", "dim"))
    for reader in readers or ("nobody",):
        console.print(to_safe_text(f"  {reader}", "dim"))
    for section in one.sections:
        console.print()
        console.print(to_safe_text(_format_place(section.place), "cyan"))
        console.print(to_safe_text(section.text))


def _format_place(place: PlaceResponse) -> str:
    parts = [
        f"page {place.page}" if place.page else "",
        " › ".join(place.heading_path),
        f"sheet {place.sheet}" if place.sheet else "",
        f"rows {place.rows[0]} to {place.rows[1]}" if place.rows else "",
    ]
    return ", ".join(part for part in parts if part) or "text"
