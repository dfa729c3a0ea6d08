"""`quarry documents` and `quarry failures`: what is indexed, and what could not be read."""

from backend.cli import command_context
from backend.cli.command_context import Json


def documents(as_json: Json = False) -> None:
    """List all indexed documents and who may read them."""
    from backend.cli import rendering
    from backend.schemas.base import dump_all
    from backend.schemas.document import DocumentSummary
    from backend.store import documents as stored

    with command_context.cli_errors(as_json):
        held = [
            DocumentSummary.model_validate(one)
            for one in stored.list_documents(command_context.open_home().database)
        ]
        if as_json:
            command_context.print_json(dump_all(held))
        else:
            rendering.print_documents(command_context.console(), held)


def failures(as_json: Json = False) -> None:
    """List the documents that could not be read, and why."""
    from backend.cli import rendering
    from backend.schemas.base import dump_all
    from backend.schemas.source import FailureResponse
    from backend.store import failures as stored

    with command_context.cli_errors(as_json):
        failed = [
            FailureResponse.model_validate(one)
            for one in stored.list_failures(command_context.open_home().database)
        ]
        if as_json:
            command_context.print_json(dump_all(failed))
        elif failed:
            rendering.print_failures(command_context.console(), failed)
        else:
            command_context.console().print("No document has failed.")
