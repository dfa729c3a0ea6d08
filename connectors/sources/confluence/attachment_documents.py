"""An attachment as a document of its own, readable by the readers of its page."""

import hashlib
from collections.abc import Sequence

from connectors.document import Document, Section
from connectors.extraction.registry import (
    HEAD_SIZE,
    UNKNOWN,
    detect_media_type,
    extract,
    is_supported,
)
from connectors.extraction.result import ExtractionResult
from connectors.http_client.response import MalformedResponse, ResponseTooLarge
from connectors.sources.confluence.client import ConfluenceClient
from connectors.sources.confluence.models import Attachment
from connectors.sources.confluence.page_documents import ContentWithAccess, get_owners
from connectors.sources.confluence.users_and_groups import UserDirectory
from connectors.text_cleaning import replace_unstorable, shorten_title, to_one_line

_FORMAT = 1
"""Raised when the same responses give another document, so that all are read again."""


def get_attachment_id(source: str, attachment: Attachment) -> str:
    return f"{source}:{attachment.id}"


def get_attachment_version(attachment: Attachment) -> str:
    values = repr((attachment.title, attachment.size))
    digest = hashlib.sha256(values.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    moment = f"{attachment.updated_at:%Y%m%dT%H%M%SZ}"
    return f"{_FORMAT}:{attachment.version_number}:{moment}:{digest}"


def index_by_document_id(attachments: Sequence[Attachment], source: str) -> dict[str, Attachment]:
    return {get_attachment_id(source, one): one for one in attachments}


def read_attachment(
    client: ConfluenceClient,
    source: str,
    page: ContentWithAccess,
    attachment: Attachment,
    max_bytes: int,
    users: UserDirectory,
) -> Document:
    """Download an attachment; if it is too large or of an unknown format, only its name is indexed.

    Raises:
        ExtractionError: it is damaged, protected or not of its format.
        SourceAuthError, TemporarilyUnavailableError, ResponseError: see `ApiClient`.
    """
    media_type, extracted = _extract(client, attachment, max_bytes)
    title = shorten_title(to_one_line(attachment.title)) or attachment.id
    name_only = Section(text=f"{title} ({page.title})")
    return Document(
        id=get_attachment_id(source, attachment),
        source=source,
        title=title,
        sections=extracted.sections if extracted else (name_only,),
        link=attachment.link,
        media_type=media_type,
        access=page.access,
        version=get_attachment_version(attachment),
        metadata={
            **(extracted.metadata if extracted else {}),
            "space": page.content.space.key,
            "kind": "attachment",
            "page": replace_unstorable(page.title),
        },
        owners=get_owners([attachment.author], users),
        created_at=attachment.created_at,
        updated_at=attachment.updated_at,
        parents=(*page.parents, page.title),
    )


def _extract(
    client: ConfluenceClient, attachment: Attachment, max_bytes: int
) -> tuple[str, ExtractionResult | None]:
    by_name = detect_media_type(attachment.title, b"")
    is_readable = by_name == UNKNOWN or is_supported(by_name)
    if not is_readable or not max_bytes or (attachment.size or 0) > max_bytes:
        return by_name, None
    try:
        response = client.download(_check_path(attachment.path), max_bytes)
    except ResponseTooLarge:
        return by_name, None
    if response.not_found:
        raise MalformedResponse("Confluence lists the attachment but has no content of it")
    by_content = detect_media_type(attachment.title, response.body[:HEAD_SIZE])
    return by_content, extract(response.body, by_content) if is_supported(by_content) else None


def _check_path(path: str) -> str:
    """Raise MalformedResponse if a path leaves the site, to which alone the credential may be sent."""
    if not path.startswith("/") or path.startswith(("//", "/\\")) or "/../" in path:
        raise MalformedResponse("the attachment has no path on the site")
    return path
