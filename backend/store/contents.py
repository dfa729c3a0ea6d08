"""What documents say, kept beside the ledger: one compressed file for each distinct content.

A file is named by the SHA-256 of what it holds, so that equal contents are kept once and a
damaged file is noticed.
"""

import hashlib
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import zstandard

from connectors.document import Access, Document, Person, Place, Section, Span

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Contents:
    folder: Path

    def put(self, content: bytes) -> str:
        """Keep `content`, and tell its key. Safe to repeat, and in several processes at once."""
        key = hashlib.sha256(content).hexdigest()
        path = self._path(key)
        if not path.exists():
            compressed = zstandard.ZstdCompressor().compress(content)
            partial = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.partial")
            try:
                partial.write_bytes(compressed)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                partial.write_bytes(compressed)
            partial.replace(path)
        return key

    def has(self, key: str) -> bool:
        return self._path(key).exists()

    def get(self, key: str) -> bytes | None:
        """What was kept under `key`; `None` if the file is missing or damaged."""
        try:
            content = zstandard.ZstdDecompressor().decompress(self._path(key).read_bytes())
        except (FileNotFoundError, zstandard.ZstdError):
            return None
        return content if hashlib.sha256(content).hexdigest() == key else None

    def drop(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.zst"


def encoded(document: Document) -> bytes:
    """All of a document but what the ledger's own row says: id, source, version and access."""
    fields = content_fields(document)
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def content_fields(document: Document) -> dict[str, object]:
    """The same as JSON values."""
    return {
        "format": _FORMAT,
        "title": document.title,
        "link": document.link,
        "media_type": document.media_type,
        "sections": [_section_fields(section) for section in document.sections],
        "metadata": dict(document.metadata),
        "owners": [[person.name, person.email] for person in document.owners],
        "created_at": document.created_at and document.created_at.isoformat(),
        "updated_at": document.updated_at and document.updated_at.isoformat(),
        "parents": document.parents,
    }


def decoded(
    content: bytes, *, document_id: str, source: str, version: str, access: Access
) -> Document:
    return document_of(
        json.loads(content), document_id=document_id, source=source, version=version, access=access
    )


def document_of(
    fields: Mapping[str, Any], *, document_id: str, source: str, version: str, access: Access
) -> Document:
    """The document of which `content_fields` made these."""
    return Document(
        id=document_id,
        source=source,
        version=version,
        access=access,
        title=fields["title"],
        link=fields["link"],
        media_type=fields["media_type"],
        sections=tuple(_section(section) for section in fields["sections"]),
        metadata={key: _metadata_value(value) for key, value in fields["metadata"].items()},
        owners=tuple(Person(name, email) for name, email in fields["owners"]),
        created_at=_moment(fields["created_at"]),
        updated_at=_moment(fields["updated_at"]),
        parents=tuple(fields["parents"]),
    )


def _section_fields(section: Section) -> dict[str, object]:
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


def _section(fields: Mapping[str, Any]) -> Section:
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


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
