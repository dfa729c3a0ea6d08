"""Knowledge as the database keeps it, and back."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from backend.research.knowledge.kept_knowledge import (
    DocumentVersion,
    KeptItem,
    PageVersion,
    Staleness,
)
from backend.research.knowledge_items import KnowledgeItem, KnowledgeType, Reference
from backend.store.research.knowledge_records import ItemSource, Json, NewItem, StoredItem
from backend.web_search.results import Freshness
from connectors.document import Span

_AGES = {one.value for one in Freshness}
_GUESSED = "guessed "


def encode_item(
    item: KnowledgeItem, pages: Iterable[PageVersion], sources: Sequence[ItemSource], now: datetime
) -> NewItem:
    return NewItem(
        question=item.question,
        answer=item.answer,
        type=item.type.value,
        updated=_encode_updated(item),
        source_code=item.source_code,
        quotes=encode_references(item.references),
        pages=[{"url": one.url, "text_hash": one.text_hash} for one in pages],
        sources=sources,
        made_at=now,
    )


def encode_references(references: Iterable[Reference]) -> list[Json]:
    return [
        {
            "exact_quote": one.exact_quote,
            "url": one.url,
            "document_id": one.document_id,
            "title": one.title,
            "date_time": _encode_time(one.date_time),
            "relevance_score": one.relevance_score,
            "answer_chunk": one.answer_chunk,
            "answer_chunk_position": _encode_span(one.answer_chunk_position),
            "section": one.section,
            "span": _encode_span(one.span),
        }
        for one in references
    ]


def decode_item(stored: StoredItem) -> KnowledgeItem:
    return KnowledgeItem(
        question=stored.question,
        answer=stored.answer,
        type=KnowledgeType(stored.type),
        references=decode_references(stored.quotes),
        updated=_decode_updated(stored.updated),
        updated_is_guess=(stored.updated or "").startswith(_GUESSED),
        source_code=stored.source_code,
    )


def decode_references(quotes: Iterable[Json]) -> tuple[Reference, ...]:
    return tuple(
        Reference(
            **{
                **one,
                "date_time": _decode_time(one["date_time"]),
                "answer_chunk_position": Span(*one["answer_chunk_position"]),
                "span": Span(*one["span"]),
            }
        )
        for one in quotes
    )


def make_kept(stored: StoredItem, stale: Staleness | None) -> KeptItem:
    """Return an item as who may read all of its sources sees it."""
    return KeptItem(
        id=stored.id,
        owner=stored.owner,
        place=stored.place,
        run_id=stored.run_id,
        item=decode_item(stored),
        documents=tuple(
            DocumentVersion(one.document_id, one.content_hash) for one in stored.sources
        ),
        pages=tuple(PageVersion(one["url"], one["text_hash"]) for one in stored.pages),
        stale=stale,
        unverified=stored.unverified,
        made_at=stored.made_at,
        changed_at=stored.changed_at,
        corrected_at=stored.corrected_at,
    )


def make_gone(stored: StoredItem) -> KeptItem:
    """Return what is left of an item one of whose documents was deleted: that there is one."""
    return KeptItem(
        id=stored.id,
        owner=stored.owner,
        place=stored.place,
        run_id=None,
        item=KnowledgeItem(question="", answer="", type=KnowledgeType(stored.type)),
        documents=(),
        pages=(),
        stale=Staleness.SOURCE_GONE,
        unverified=False,
        made_at=stored.made_at,
        changed_at=stored.changed_at,
        corrected_at=stored.corrected_at,
    )


def _encode_span(span: Span) -> list[int]:
    return [span.start, span.end]


def _encode_time(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(UTC).isoformat()


def _decode_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _encode_updated(item: KnowledgeItem) -> str | None:
    match item.updated:
        case Freshness() as age:
            return age.value
        case datetime() as time if item.updated_is_guess:
            return f"{_GUESSED}{_encode_time(time)}"
        case time:
            return _encode_time(time)


def _decode_updated(text: str | None) -> datetime | Freshness | None:
    return Freshness(text) if text in _AGES else _decode_time(text and text.removeprefix(_GUESSED))
