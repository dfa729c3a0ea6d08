"""An administrator looks whether a document exists that they may not read: its title and readers, never its contents."""

from dataclasses import dataclass
from datetime import datetime

from backend.access.document_readers import AllReaders, DocumentReaders
from backend.store import audit
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.documents import documents
from connectors.errors import NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLook:
    id: str
    title: str
    source: str
    indexed_at: datetime
    who: DocumentReaders


def look_at_document(database: Database, name: str, actor: Actor) -> DocumentLook:
    """Return that a document exists, its title, and who may read it. It is in the audit, found or not.

    Args:
        name: its id or its link.

    Raises:
        NotFoundError: no document of this name is indexed.
    """
    found = documents.find_held(database, name)
    document_id = found.id if found else name
    source = found.source if found else name.partition(":")[0]
    audit.record(database, "look", source, {"document": document_id}, actor)
    if found is None:
        raise NotFoundError(f"No document {name} is indexed.")
    return DocumentLook(
        id=found.id,
        title=found.title,
        source=found.source,
        indexed_at=found.indexed_at,
        who=AllReaders(database).find(found.access),
    )
