"""`quarry look`: that a document exists, and who may read it."""

from typing import Annotated

import typer

from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text


def look(
    document: Annotated[str, typer.Argument(help="The id or the link of the document.")],
    as_json: Json = False,
) -> None:
    """Look as the administrator whether a document exists, and who may read it.

    What it says is for its readers: quarry show DOCUMENT --as READER. The audit records the look.
    """
    from backend.access.document_existence import look_at_document
    from backend.schemas.document import DocumentLookResponse
    from backend.store.audit import OWNER

    with command_line.cli_errors(as_json):
        found = look_at_document(command_line.open_home().database, document, OWNER)
        if as_json:
            command_line.print_model(DocumentLookResponse.from_look(found))
            return
        console = command_line.console()
        console.print(to_safe_text(found.title, "bold"))
        console.print(to_safe_text(found.id), soft_wrap=True)
        console.print(to_safe_text(f"{found.source}, readable by", "dim"))
        for reader in found.who.describe() or ["nobody"]:
            console.print(to_safe_text(f"  {reader}", "dim"))
