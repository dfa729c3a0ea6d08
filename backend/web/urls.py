"""Where a page leads: to a document, to the place of a passage, to the original."""

import re
from typing import Literal, TypeAlias
from urllib.parse import urlencode

from backend.chat.document_addresses import quote_id
from connectors.document import Span

CITED = "cited"
"""The id of the first marked piece on the page of a document."""

MEMORIES = "/memories"
"""Where the memories of whoever looks are listed."""

KNOWLEDGE = "/knowledge"
"""Where kept knowledge is listed, for whoever looks."""

OneTimePage: TypeAlias = Literal["/invitation", "/password-reset"]
"""What a link leads to that is valid once."""

_ELSEWHERE = re.compile(r"(?:https?://|mailto:)\S", re.IGNORECASE)


def document(
    document_id: str, section: int | None = None, span: Span | None = None, query: str = ""
) -> str:
    """Return the address of a document's page; with a section and a span, at that passage."""
    parameters: dict[str, str | int] = {"q": query} if query else {}
    if section is not None and span is not None and span.start < span.end:
        parameters |= {"section": section, "start": span.start, "end": span.end}
    query_string = f"?{urlencode(parameters)}" if parameters else ""
    fragment = f"#{CITED}" if "section" in parameters else ""
    return f"/document/{quote_id(document_id)}{query_string}{fragment}"


def make_link(server: str, path: OneTimePage, code: str) -> str:
    return f"{server.removesuffix('/')}{path}?code={code}"


def original(document_id: str, link: str) -> str | None:
    """Return what opens a document where it came from; None where nothing does.

    A browser opens no file of the disk from a page, so that Quarry hands it out.
    """
    if _is_file(link):
        return f"/api/documents/{quote_id(document_id)}/original"
    return elsewhere(link)


def page_image(document_id: str, link: str, number: int) -> str | None:
    """Return the address of the image of a page of a PDF file; None where Quarry does not have the file."""
    return f"/api/documents/{quote_id(document_id)}/pages/{number}" if _is_file(link) else None


def elsewhere(link: str) -> str | None:
    """Return a link that may be followed out of a page; None for all that could do more than that."""
    link = link.strip()
    return link if _ELSEWHERE.match(link) else None


def _is_file(link: str) -> bool:
    return link.lower().startswith("file:")
