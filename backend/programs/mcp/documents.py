"""What `search` and `fetch` return, and the documents as resources.

What the asker may not read and what does not exist take the same way, and have the same answer.
"""

from collections.abc import Iterator

from backend.programs.mcp.asker import DocumentAccess
from backend.schemas.mcp_tool import (
    FetchArguments,
    FetchedDocument,
    FoundDocument,
    FoundDocuments,
    SearchArguments,
)
from backend.search.models import DocumentNumbers, SearchDoc
from backend.search.query_syntax import parse_query
from backend.search.search_service import Grouping, find_grouped
from backend.store.documents import documents as stored
from backend.store.documents.documents import HeldDocument
from connectors.document import Document
from connectors.errors import NotFoundError
from indexing.index.protocols import Filters

PART = 50_000
"""Characters of a document in one answer: what a model reads at once. Clients hold 1 MiB of an event, in which the text
stands twice, in up to six bytes a character."""
PAGE = 100
"""Documents in one answer."""
_DOCUMENT = "document"


def search_documents(access: DocumentAccess, asked: SearchArguments) -> FoundDocuments:
    service, parsed = access.search, parse_query(asked.query)
    request = service.request(parsed, access.find_readers(), Filters(), access.deadline)
    tool = service.tool(None, DocumentNumbers())
    found = find_grouped(tool, request, asked.limit, Grouping.DOCUMENT)
    return FoundDocuments(results=tuple(_to_found(access, doc) for doc in found.docs))


def _to_found(access: DocumentAccess, doc: SearchDoc) -> FoundDocument:
    url = access.find_url(doc.document_id, doc.link, _DOCUMENT)
    return FoundDocument(id=doc.document_id, title=doc.title, url=url)


def fetch_document(access: DocumentAccess, asked: FetchArguments) -> FetchedDocument:
    """Return a part of a document. Raises NotFoundError: it does not exist, or may not be read."""
    document = find_document(access, asked.id)
    text = read_text(document)
    end = asked.start + PART
    metadata = dict(_describe(document))
    if end < len(text):
        metadata["next_start"] = str(end)
    return FetchedDocument(
        id=document.id,
        title=document.title,
        text=text[asked.start : end],
        url=access.find_url(document.id, document.link, _DOCUMENT),
        metadata=metadata,
    )


def find_document(access: DocumentAccess, document_id: str) -> Document:
    """Return a document that the asker may open. Raises NotFoundError: it does not exist, or may not be read."""
    found = stored.find(access.database, document_id, access.find_readers_to_open())
    if found is None:
        raise NotFoundError("The document does not exist, or you may not read it.")
    return found.document


def list_documents(access: DocumentAccess, after: str) -> list[HeldDocument]:
    """Return a page of the documents that a search may find, by id, starting after the id `after`."""
    return stored.list_readable(access.database, access.find_readers(), after, PAGE)


def read_text(document: Document) -> str:
    return "\n\n".join(section.text for section in document.sections)


def _describe(document: Document) -> Iterator[tuple[str, str]]:
    yield "source", document.source
    yield "media_type", document.media_type
    if document.updated_at is not None:
        yield "updated_at", document.updated_at.isoformat()
