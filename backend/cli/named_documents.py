"""The document that an argument of a command names."""

from backend.cli import command_line
from backend.store.database import Database
from backend.store.documents import documents
from backend.store.documents.documents import StoredDocument
from connectors.access import Readers

MOST_NAMED = 10


def find_named(
    database: Database, name: str, asker: Readers, as_json: bool
) -> StoredDocument | None:
    """Return the document with this id, or the one with this link, file name or title; end the command where several have it."""
    if found := documents.find(database, name, asker):
        return found
    named = documents.find_by_name(database, name, asker, MOST_NAMED)
    if len(named) > 1:
        ids = "\n".join(f"  {one.id}" for one in named)
        command_line.fail(f"Several documents have this name. Name one of:\n{ids}", as_json)
    return documents.find(database, named[0].id, asker) if named else None
