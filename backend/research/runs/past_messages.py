"""The messages of a conversation that research goes on from: answers without their markers, with what these led to."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from backend.chat.citations.citation_processor import CitedDocument, SourceKind
from backend.chat.citations.citation_utils import remove_citations
from backend.conversations.history import TurnHistory
from backend.research.knowledge_items import Reference
from backend.research.record.request import PastMessage
from backend.research.references.cited_text import keep_markers
from backend.store.chat.messages import Message
from connectors.document import Span


def make_past_messages(path: Sequence[Message], made: TurnHistory) -> tuple[PastMessage, ...]:
    """Return the messages of a path, those that may not be read now, or answered nothing, without a text.

    Args:
        made: what may be shown of the path, message by message.
    """
    return tuple(
        _make_past_message(one, said.text) for one, said in zip(path, made.messages, strict=True)
    )


def _make_past_message(message: Message, told: str) -> PastMessage:
    if message.role == "user":
        return PastMessage("user", message.text)
    established = told == message.text and (message.answer or {}).get("answered", True)
    return _make_past_answer(message) if established else PastMessage("assistant", "")


def _make_past_answer(message: Message) -> PastMessage:
    plain = remove_citations(message.text).strip()
    references = _list_references(message.text, plain, (message.answer or {}).get("citations", ()))
    return PastMessage("assistant", plain, tuple(references), message.document_ids)


def _list_references(
    text: str, plain: str, citations: Sequence[Mapping[str, Any]]
) -> Iterator[Reference]:
    """Yield the quote of each citation, and what of the answer it bears out."""
    mapping = {one["number"]: _name_document(one) for one in citations}
    sentences = iter(keep_markers(text, mapping).sentences)
    for citation in citations:
        # There is one citation for each cited sentence, in their order.
        cited = next((one for one in sentences if one.number == citation["number"]), None)
        at = plain.find(cited.claim) if cited else -1
        if cited is not None and at >= 0 and citation["quote"].strip():
            place = Span(at, at + len(cited.claim))
            yield _make_reference(citation, cited.claim, place)


def _name_document(citation: Mapping[str, Any]) -> CitedDocument:
    kind = SourceKind(citation.get("kind", SourceKind.DOCUMENT))
    return CitedDocument(citation["document_id"], citation["title"], citation["link"], kind)


def _make_reference(citation: Mapping[str, Any], claim: str, place: Span) -> Reference:
    cited = _name_document(citation)
    is_document = cited.kind in (SourceKind.DOCUMENT, SourceKind.FILE)
    return Reference(
        exact_quote=citation["quote"],
        url=cited.document_id if cited.kind is SourceKind.RESEARCH else cited.link,
        document_id=cited.document_id if is_document else None,
        title=cited.title,
        relevance_score=citation["score"],
        answer_chunk=claim,
        answer_chunk_position=place,
        section=citation["section"],
        span=Span(*citation["span"]),
    )
