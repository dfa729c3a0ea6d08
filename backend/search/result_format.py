"""Found sections as a model reads them, and as people and programs are shown them."""

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime

from backend.search.models import CitationMapping, InferenceSection, SearchDoc
from backend.search.prompts import quote
from indexing.chunking.chunk import Chunk
from indexing.index import person_keys

Metadata = Mapping[str, str | list[str]]


class DocumentNumbers:
    """The citation numbers of a turn: a document keeps its number over all searches of it.

    Numbers count from 1 in the order in which documents are first shown. Safe to use from
    several threads.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()

    def number(self, document_id: str) -> int:
        """The number of a document, the next free one if it has none yet."""
        with self._lock:
            return self._numbers.setdefault(document_id, len(self._numbers) + 1)

    def citations(self) -> CitationMapping:
        """All numbers given so far, to their document ids."""
        with self._lock:
            return {number: document_id for document_id, number in self._numbers.items()}


def excerpt(section: InferenceSection, number: int, chunks: Sequence[Chunk]) -> dict[str, object]:
    """`chunks` of a section as the model that selects is shown them, by their number in the list."""
    return {"id": number, **_facts(section), "content": _text(chunks)}


def frame_for_model(section: InferenceSection, number: int) -> dict[str, object]:
    """Everything but the content of `result_for_model`."""
    facts = _facts(section)
    metadata = facts.pop("metadata", None)
    frame = {"document": number, **facts, "url": section.best.chunk.link, "content": ""}
    return frame | ({"metadata": metadata} if metadata else {})


def result_for_model(section: InferenceSection, number: int) -> dict[str, object]:
    """A section as the model that answers reads it, under its document's citation number."""
    return frame_for_model(section, number) | {"content": _text(section.chunks)}


def text_for_model(
    sections: Sequence[InferenceSection], numbers: DocumentNumbers, note: str
) -> str:
    results = [
        result_for_model(section, numbers.number(section.document_id)) for section in sections
    ]
    return quote({"results": results} | ({"note": note} if note else {}))


def search_doc(section: InferenceSection, number: int) -> SearchDoc:
    chunk = section.best.chunk
    return SearchDoc(
        number=number,
        document_id=chunk.document_id,
        title=chunk.title,
        source=chunk.source,
        link=chunk.link,
        media_type=chunk.media_type,
        heading_path=chunk.heading_path,
        section=chunk.section,
        span=chunk.span,
        updated_at=chunk.updated_at,
        content=_text(section.chunks),
        score=section.best.score,
        why=section.best.why,
    )


def _text(chunks: Sequence[Chunk]) -> str:
    return "\n".join(chunk.text for chunk in chunks)


def _facts(section: InferenceSection) -> dict[str, object]:
    """What is known of a section's document; what is not known is left out."""
    chunk = section.best.chunk
    facts: dict[str, object] = {
        "title": chunk.title,
        "source": chunk.source,
        "created_at": _day_and_time(chunk.created_at),
        "updated_at": _day_and_time(chunk.updated_at),
        "authors": [name for name in map(person_keys.called, chunk.owners) if name],
        "metadata": _metadata(chunk.tags),
    }
    return {name: value for name, value in facts.items() if value}


def _day_and_time(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="minutes") if moment else None


def _metadata(tags: frozenset[str]) -> Metadata:
    values: dict[str, list[str]] = {}
    for tag in sorted(tags):
        key, _, value = tag.partition("=")
        values.setdefault(key, []).append(value)
    return {key: several[0] if len(several) == 1 else several for key, several in values.items()}
