"""The source under which people's own files are indexed. Nobody connects, syncs or lists it; each file in it is its owner's alone."""

from datetime import UTC, datetime

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from backend.store.database import Database
from backend.store.schema.tables import sources
from backend.store.sync.sources import FILES_KIND

FILES_SOURCE = "Your files"
"""As its facet is called. No source that is connected can have this name, or one of the following: those hold no spaces."""
FILES_OF_PROJECT = "Files of this project"
"""As the same source is called in an answer whose project holds the file, whoever uploaded it."""
FILES_OF_ASSISTANT = "Files of this assistant"
FILES_OF_SOME_PROJECT = "Files of a project"
"""As it is called where a file of somebody else is read by itself."""
FILES_OF_SOME_ASSISTANT = "Files of an assistant"
NAMES_OF_SOURCE = frozenset(
    {
        FILES_SOURCE,
        FILES_OF_PROJECT,
        FILES_OF_ASSISTANT,
        FILES_OF_SOME_PROJECT,
        FILES_OF_SOME_ASSISTANT,
    }
)


def ensure(database: Database) -> None:
    """Add the source where no file was uploaded before."""
    now = datetime.now(UTC)
    # Paused for ever: no run of it is ever due.
    row = {"name": FILES_SOURCE, "kind": FILES_KIND, "settings": {}, "created_at": now}
    row["paused_at"] = now
    with database.reading() as connection:
        query = select(sources.c.id).where(sources.c.name == FILES_SOURCE)
        if connection.scalar(query) is not None:
            return
    try:
        with database.writing() as connection:
            connection.execute(insert(sources).values(row))
    except IntegrityError:
        # Another process was quicker.
        return


def make_document_id(file_id: str) -> str:
    return f"{FILES_SOURCE}:{file_id}"
