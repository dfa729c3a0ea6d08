"""The compressed form in which changes and the content of documents are stored, with a checksum.

Changes of a source are stored until they are indexed.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import zstandard

from connectors.access import Access, parse_access
from connectors.connector import Deletion, Unchanged, Unreadable
from connectors.document import Document, Person, Place, Section, Span
from indexing.ingestion.batching import DocumentChange

_FORMAT = 1


def encode_document(document: Document) -> bytes:
    """Compress all of a document that its row lacks: all but id, source, version and access."""
    fields = json.dumps(to_fields(document), ensure_ascii=False, separators=(",", ":"))
    return zstandard.ZstdCompressor(write_checksum=True).compress(fields.encode())


def to_fields(document: Document) -> dict[str, object]:
    """Return the content that `encode_document` compresses as JSON values."""
    return {
        "format": _FORMAT,
        "title": document.title,
        "link": document.link,
        "media_type": document.media_type,
        "sections": [_section_to_fields(section) for section in document.sections],
        "metadata": dict(document.metadata),
        "owners": [[person.name, person.email] for person in document.owners],
        "created_at": document.created_at and document.created_at.isoformat(),
        "updated_at": document.updated_at and document.updated_at.isoformat(),
        "parents": document.parents,
    }


def decode_document(
    content: bytes | None, *, document_id: str, source: str, version: str, access: Access
) -> Document | None:
    """Reverse `encode_document`; return None if the content is missing or damaged."""
    if content is None:
        return None
    try:
        fields = json.loads(zstandard.ZstdDecompressor().decompress(content))
    except zstandard.ZstdError:
        return None
    return from_fields(
        fields, document_id=document_id, source=source, version=version, access=access
    )


def from_fields(
    fields: Mapping[str, Any], *, document_id: str, source: str, version: str, access: Access
) -> Document:
    """Reverse `to_fields`."""
    return Document(
        id=document_id,
        source=source,
        version=version,
        access=access,
        title=fields["title"],
        link=fields["link"],
        media_type=fields["media_type"],
        sections=tuple(_section_from_fields(section) for section in fields["sections"]),
        metadata={key: _metadata_value(value) for key, value in fields["metadata"].items()},
        owners=tuple(Person(name, email) for name, email in fields["owners"]),
        created_at=_parse_datetime(fields["created_at"]),
        updated_at=_parse_datetime(fields["updated_at"]),
        parents=tuple(fields["parents"]),
    )


def _section_to_fields(section: Section) -> dict[str, object]:
    place = section.place
    fields = {
        "text": section.text,
        "kind": section.kind,
        "link": section.link,
        "page": place.page,
        "heading_path": place.heading_path or None,
        "sheet": place.sheet,
        "rows": place.rows,
        "span": place.span and (place.span.start, place.span.end),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _section_from_fields(fields: Mapping[str, Any]) -> Section:
    rows, span = fields.get("rows"), fields.get("span")
    place = Place(
        page=fields.get("page"),
        heading_path=tuple(fields.get("heading_path", ())),
        sheet=fields.get("sheet"),
        rows=rows and (rows[0], rows[1]),
        span=span and Span(*span),
    )
    return Section(text=fields["text"], kind=fields["kind"], link=fields.get("link"), place=place)


def _metadata_value(value: str | Sequence[str]) -> str | tuple[str, ...]:
    return value if isinstance(value, str) else tuple(value)


def _parse_datetime(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def encode_changes(changes: Sequence[DocumentChange]) -> bytes:
    # ASCII escapes preserve lone surrogates, which the planner refuses later with a reason.
    text = json.dumps([_fields(change) for change in changes], separators=(",", ":"))
    return zstandard.ZstdCompressor(level=1).compress(text.encode())


def decode_changes(payload: bytes) -> tuple[DocumentChange, ...]:
    return tuple(map(_to_change, json.loads(zstandard.ZstdDecompressor().decompress(payload))))


def _fields(change: DocumentChange) -> dict[str, object]:
    match change:
        case Document():
            return {
                "is": "document",
                "id": change.id,
                "source": change.source,
                "version": change.version,
                "readers": change.access.to_json(),
                "content": to_fields(change),
            }
        case Deletion(document_id):
            return {"is": "deletion", "id": document_id}
        case Unchanged(document_id, version):
            return {"is": "unchanged", "id": document_id, "version": version}
        case Unreadable():
            return {
                "is": "unreadable",
                "id": change.document_id,
                "item": change.item,
                "reason": change.reason,
                "link": change.link,
                "version": change.version,
            }


def _to_change(fields: Mapping[str, Any]) -> DocumentChange:
    match fields["is"]:
        case "document":
            return from_fields(
                fields["content"],
                document_id=fields["id"],
                source=fields["source"],
                version=fields["version"],
                access=parse_access(fields["readers"]),
            )
        case "deletion":
            return Deletion(fields["id"])
        case "unchanged":
            return Unchanged(fields["id"], fields["version"])
        case _:
            return Unreadable(
                document_id=fields["id"],
                item=fields["item"],
                reason=fields["reason"],
                link=fields["link"],
                version=fields.get("version"),
            )
