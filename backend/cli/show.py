"""`quarry show`: one document as it was read."""

from typing import Annotated

import typer

from backend.cli import command_context
from backend.cli.command_context import As, Json


def show(
    document: Annotated[str, typer.Argument(help="The id of the document, as shown by search.")],
    readers: As = None,
    as_json: Json = False,
) -> None:
    """Show a document: its sections, their places, and who may read it."""
    from backend.cli import rendering
    from backend.schemas.document import DocumentContent
    from backend.store import documents as stored

    asker = command_context.readers(readers)
    with command_context.cli_errors(as_json):
        container = command_context.open_home()
        found = stored.find(container.database, document, asker)
        if found is None:
            command_context.fail(f"There is no document {document!r} that you may read.", as_json)
        if as_json:
            command_context.print_model(DocumentContent.from_stored(found))
        else:
            rendering.print_document(command_context.console(), DocumentContent.from_stored(found))
