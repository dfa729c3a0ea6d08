"""Changes of a source, encoded to be stored until they are indexed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import zstandard

from backend.store.document_contents import from_fields, to_fields
from connectors.access import Access
from connectors.connector import Deletion, Unchanged, Unreadable
from connectors.document import Document
from indexing.ingestion.batching import DocumentChange


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
                "readers": sorted(change.access.readers),
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
            }


def _to_change(fields: Mapping[str, Any]) -> DocumentChange:
    match fields["is"]:
        case "document":
            return from_fields(
                fields["content"],
                document_id=fields["id"],
                source=fields["source"],
                version=fields["version"],
                access=Access(frozenset(fields["readers"])),
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
            )
