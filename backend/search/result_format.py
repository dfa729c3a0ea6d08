"""Format found sections as JSON for language models."""

import json
from collections.abc import Sequence
from datetime import datetime

from backend.search.models import DocumentNumbers, InferenceSection
from indexing.chunking.chunk import Chunk
from indexing.index import person_keys


def to_json(value: object) -> str:
    """Serialize so that every script stays readable, and counts as few tokens."""
    return json.dumps(value, ensure_ascii=False)


def excerpt_for_model(
    section: InferenceSection, number: int, chunks: Sequence[Chunk]
) -> dict[str, object]:
    """Describe a section to the model that selects, by its number in the list."""
    return {
        "id": number,
        **_document_fields(section),
        "content": "\n".join(chunk.text for chunk in chunks),
    }


def frame_for_model(section: InferenceSection, number: int) -> dict[str, object]:
    """Return `result_for_model` without its content."""
    fields = _document_fields(section)
    metadata = fields.pop("metadata", None)
    frame = {"document": number, **fields, "url": section.best.chunk.link, "content": ""}
    return frame | ({"metadata": metadata} if metadata else {})


def result_for_model(section: InferenceSection, number: int) -> dict[str, object]:
    """Describe a section to the model that answers, under its document's citation number."""
    return frame_for_model(section, number) | {"content": section.text}


def results_for_model(
    sections: Sequence[InferenceSection], numbers: DocumentNumbers, note: str
) -> str:
    results = [
        result_for_model(section, numbers.assign(section.document_id)) for section in sections
    ]
    return to_json({"results": results} | ({"note": note} if note else {}))


def _document_fields(section: InferenceSection) -> dict[str, object]:
    """Describe a section's document; what is not known is left out."""
    chunk = section.best.chunk
    fields: dict[str, object] = {
        "title": chunk.title,
        "source": chunk.source,
        "created_at": _format_time(chunk.created_at),
        "updated_at": _format_time(chunk.updated_at),
        "authors": [name for name in map(person_keys.display_name, chunk.owners) if name],
        "metadata": _group_tags(chunk.tags),
    }
    return {name: value for name, value in fields.items() if value}


def _format_time(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="minutes") if moment else None


def _group_tags(tags: frozenset[str]) -> dict[str, str | list[str]]:
    values: dict[str, list[str]] = {}
    for tag in sorted(tags):
        key, _, value = tag.partition("=")
        values.setdefault(key, []).append(value)
    return {key: several[0] if len(several) == 1 else several for key, several in values.items()}
