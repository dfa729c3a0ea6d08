"""Answers of an agent: what they cite, and the knowledge that they are once they count."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from backend.chat.citations.citation_processor import SourceKind
from backend.chat.citations.citation_utils import remove_citations
from backend.chat.citations.cited_sentences import CitedSentence
from backend.research.knowledge.builders import measure_relevance
from backend.research.knowledge_items import KnowledgeItem, KnowledgeType, Reference
from backend.research.record.sources import NumberedSource
from backend.research.references.cited_text import CitedText, split_source
from connectors.document import Span


def learn_from_answer(
    question: str, answer: CitedText, sources: Mapping[int, NumberedSource], now: datetime
) -> KnowledgeItem:
    """Return what is known by an answer: each cited sentence with the sentence of its source that is nearest to it."""
    plain = remove_citations(answer.text).strip()
    return KnowledgeItem(
        question=question,
        answer=plain,
        type=KnowledgeType.QA,
        references=tuple(_refer(plain, answer.sentences, sources)),
        updated=now,
    )


def _refer(
    plain: str, cited: Iterable[CitedSentence], sources: Mapping[int, NumberedSource]
) -> Iterator[Reference]:
    for one in cited:
        at = plain.find(one.claim)
        source = sources.get(one.number)
        if at >= 0 and source is not None and (found := _find_quote(one.claim, source)):
            quote, section, span, score = found
            yield Reference(
                exact_quote=quote,
                url=source.document_id if source.kind is SourceKind.RESEARCH else source.url,
                document_id=source.document_id if source.kind is SourceKind.DOCUMENT else None,
                title=source.title,
                date_time=source.date,
                relevance_score=score,
                answer_chunk=one.claim,
                answer_chunk_position=Span(at, at + len(one.claim)),
                section=section,
                span=span,
            )


def _find_quote(claim: str, source: NumberedSource) -> tuple[str, int, Span, float] | None:
    """Return the sentence of a source that shares most words with a claim, and where it stands."""
    singles = (one for one in split_source(source) if one.sentences == 1)
    scored = [(measure_relevance(claim, one.text), one) for one in singles]
    if not scored:
        return None
    score, best = max(scored, key=lambda pair: pair[0])
    return best.text, best.section, best.span, score
