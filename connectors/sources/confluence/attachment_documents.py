"""An attachment as a document of its own, for those who may read its page."""

import hashlib
from collections.abc import Sequence

from connectors.document import Document, Section
from connectors.extraction.media_types import HEAD, UNKNOWN, media_type_of
from connectors.extraction.registry import can_read, extract
from connectors.extraction.result import Extracted, one_line, safe, shortened
from connectors.http_client.response import Malformed, TooLarge
from connectors.sources.confluence.client import Api
from connectors.sources.confluence.models import Attachment
from connectors.sources.confluence.page_documents import Standing, owners
from connectors.sources.confluence.users_and_groups import People

_READING = 1
"""Goes up when the same answers are read into another document."""


def file_id(source: str, attachment: Attachment) -> str:
    return f"{source}:{attachment.id}"


def version(attachment: Attachment) -> str:
    told = repr((attachment.title, attachment.size))
    digest = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_READING}:{attachment.number}:{attachment.updated_at:%Y%m%dT%H%M%SZ}:{digest}"


def document(
    api: Api, source: str, standing: Standing, attachment: Attachment, largest: int, people: People
) -> Document:
    """Of a format that is not read, and of more than `largest` bytes, it is only named.

    Raises:
        CannotRead: it is broken, protected or not of its format.
        ActionRequiredError, TemporarilyUnavailableError, BadAnswer: see `Api.get`.
    """
    media_type, found = _read(api, attachment, largest)
    title = shortened(one_line(attachment.title)) or attachment.id
    named = Section(text=f"{title} ({standing.title})")
    content = standing.content
    return Document(
        id=file_id(source, attachment),
        source=source,
        title=title,
        sections=found.sections if found else (named,),
        link=attachment.link,
        media_type=media_type,
        access=standing.access,
        version=version(attachment),
        metadata={
            **(found.metadata if found else {}),
            "space": content.space.key,
            "kind": "attachment",
            "page": safe(standing.title),
        },
        owners=owners([attachment.by], people),
        created_at=attachment.created_at,
        updated_at=attachment.updated_at,
        parents=(*standing.parents, standing.title),
    )


def _read(api: Api, attachment: Attachment, largest: int) -> tuple[str, Extracted | None]:
    named = media_type_of(attachment.title, b"")
    is_read = named == UNKNOWN or can_read(named)
    if not is_read or not largest or (attachment.size or 0) > largest:
        return named, None
    try:
        answer = api.file(_inside(attachment.path), largest)
    except TooLarge:
        return named, None
    if answer.gone:
        raise Malformed("Confluence lists the attachment and has no file of it")
    seen = media_type_of(attachment.title, answer.body[:HEAD])
    return seen, extract(answer.body, seen) if can_read(seen) else None


def _inside(path: str) -> str:
    """Raises Malformed: it leads away from where the site begins, and its credential must not go there."""
    if not path.startswith("/") or path.startswith(("//", "/\\")) or "/../" in path:
        raise Malformed("the attachment has no address on the site")
    return path


def names(attachments: Sequence[Attachment], source: str) -> dict[str, Attachment]:
    """By the ids of their documents, each once."""
    return {file_id(source, one): one for one in attachments}
