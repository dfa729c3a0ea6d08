"""Documents as resources, named `quarry://documents/ID`."""

from collections.abc import Sequence
from urllib.parse import quote, unquote

from mcp_types import Resource, ResourceTemplate, TextResourceContents

from backend.programs.mcp.documents import PAGE, PART, read_text
from backend.store.documents.documents import HeldDocument
from connectors.document import Document

PREFIX = "quarry://documents/"
_TEXT = "text/plain"
TEMPLATE = ResourceTemplate(
    name="document",
    title="A company document",
    uri_template=f"{PREFIX}{{id}}",
    description="The text of a document, by the id that search returns",
    mime_type=_TEXT,
)


def make_uri(document_id: str) -> str:
    """Return the URI of a document: RFC 6570, simple expansion of the template."""
    return f"{PREFIX}{quote(document_id, safe='', errors='replace')}"


def read_id(uri: str) -> str | None:
    """Return the id of the document that a URI names; None where it names none."""
    return unquote(uri.removeprefix(PREFIX)) if uri.startswith(PREFIX) else None


def to_resource(held: HeldDocument) -> Resource:
    return Resource(
        uri=make_uri(held.id),
        name=held.id,
        title=held.title,
        description=f"From the source {held.source}",
        mime_type=_TEXT,
    )


def find_next(page: Sequence[HeldDocument]) -> str | None:
    """Return the cursor of the page that follows; None at the end."""
    return page[-1].id if len(page) == PAGE else None


def to_contents(uri: str, document: Document) -> TextResourceContents:
    """Return the text of a document; of a long one the beginning, which says how to go on."""
    text = read_text(document)
    if len(text) > PART:
        text = f"{text[:PART]}\n\n[The document goes on. To read it, call fetch with the start {PART}.]"
    return TextResourceContents(uri=uri, mime_type=_TEXT, text=text)
