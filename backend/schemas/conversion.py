"""From what the rooms say to what programs are told.

The rooms are imported for their types alone: a command loads no room that it has no part in.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from backend.schemas import models

if TYPE_CHECKING:
    from backend.chat.citations.citation_processor import CitationInfo
    from backend.chat.citations.verification import Support
    from backend.chat.events import AnswerDone, Citation
    from backend.search.events import Queries
    from backend.search.models import InferenceSection, SearchDoc
    from backend.store.audit import AuditEntry
    from backend.store.documents import HeldDocument, StoredDocument
    from backend.store.failures import Failure
    from backend.store.runs import Run
    from connectors.document import Section, Span
    from indexing.chunking.chunk import Chunk
    from indexing.index.protocols import Facets
    from indexing.ingestion.progress import Progress, Report

BRIEF_CHARACTERS = 300
BRIEF_RESULTS = 20
"""Of a search that is under way, told before the answer."""


def search(query: str, docs: "Sequence[SearchDoc]", seconds: float) -> models.SearchWire:
    return models.SearchWire(
        query=query, results=tuple(map(_result, docs)), seconds=round(seconds, 4)
    )


def _result(doc: "SearchDoc") -> models.ResultWire:
    return models.ResultWire(
        number=doc.number,
        document_id=doc.document_id,
        title=doc.title,
        source=doc.source,
        link=doc.link,
        media_type=doc.media_type,
        heading_path=doc.heading_path,
        section=doc.section,
        span=span(doc.span),
        updated_at=doc.updated_at,
        content=doc.content,
        score=round(doc.score, 6),
        why=tuple(models.WhyWire(variant=w.variant, leg=w.leg, rank=w.rank) for w in doc.why),
    )


def facets(counts: "Facets") -> models.FacetsWire:
    return models.FacetsWire(
        sources=dict(counts.sources),
        media_types=dict(counts.media_types),
        people=tuple(
            models.PersonWire(key=key, name=one.name, documents=one.documents)
            for key, one in counts.people.items()
        ),
        months=dict(counts.months),
    )


def queries(of: "Queries") -> models.QueriesWire:
    return models.QueriesWire(
        variants=tuple(
            models.VariantWire(name=one.name, text=one.text, weight=one.weight)
            for one in of.variants
        )
    )


def results(sections: "Sequence[InferenceSection]") -> models.ResultsWire:
    return models.ResultsWire(results=tuple(map(_brief, sections[:BRIEF_RESULTS])))


def _brief(section: "InferenceSection") -> models.BriefWire:
    chunk = section.best.chunk
    return models.BriefWire(
        document_id=chunk.document_id,
        title=chunk.title,
        source=chunk.source,
        link=chunk.link,
        media_type=chunk.media_type,
        heading_path=chunk.heading_path,
        section=chunk.section,
        span=span(chunk.span),
        updated_at=chunk.updated_at,
        content=_beginning(chunk.text),
    )


def _beginning(text: str) -> str:
    return text if len(text) <= BRIEF_CHARACTERS else f"{text[:BRIEF_CHARACTERS].rstrip()}…"


def mark(citation: "CitationInfo") -> models.MarkWire:
    return models.MarkWire(
        number=citation.number,
        document_id=citation.document_id,
        title=citation.title,
        link=citation.link,
    )


def document(held: "HeldDocument") -> models.DocumentWire:
    return models.DocumentWire(
        id=held.id,
        title=held.title,
        source=held.source,
        link=held.link,
        readers=held.readers,
        chunks=held.chunks,
        updated_at=held.updated_at,
    )


def shown(stored: "StoredDocument") -> models.ShownWire:
    return models.ShownWire(**_shown(stored))


def document_shown(
    stored: "StoredDocument", chunks: "Iterable[Chunk]", *, has_original: bool
) -> models.DocumentShownWire:
    return models.DocumentShownWire(
        **_shown(stored),
        media_type=stored.document.media_type,
        has_original=has_original,
        synced_at=stored.indexed_at,
        chunks=tuple(
            models.ChunkWire(position=one.position, section=one.section, span=span(one.span))
            for one in chunks
        ),
    )


def _shown(stored: "StoredDocument") -> dict[str, Any]:
    held = stored.document
    return {
        "id": held.id,
        "title": held.title,
        "source": held.source,
        "link": held.link,
        "readers": tuple(sorted(held.access.readers)),
        "updated_at": held.updated_at,
        "sections": tuple(map(_section, held.sections)),
    }


def _section(section: "Section") -> models.SectionWire:
    place = section.place
    return models.SectionWire(
        kind=section.kind,
        text=section.text,
        link=section.link,
        place=models.PlaceWire(
            page=place.page,
            heading_path=place.heading_path,
            sheet=place.sheet,
            rows=place.rows,
            span=span(place.span) if place.span else None,
        ),
    )


def span(of: "Span") -> tuple[int, int]:
    return of.start, of.end


def answer(question: str, done: "AnswerDone", seconds: float) -> models.AnswerWire:
    return models.AnswerWire(
        question=question,
        answer=done.text,
        model=done.model,
        citations=tuple(map(_citation, done.citations)),
        seconds=round(seconds, 4),
    )


def _citation(citation: "Citation") -> models.CitationWire:
    quote, section, place, score, verdict = _support(citation.support)
    return models.CitationWire(
        number=citation.number,
        document_id=citation.document_id,
        title=citation.title,
        link=citation.link,
        quote=quote,
        section=section,
        span=place,
        score=score,
        verdict=verdict,
    )


def _support(of: "Support | None") -> tuple[str, int, tuple[int, int], float, str]:
    if of is None:
        return "", 0, (0, 0), 0.0, "unsupported"
    return of.quote, of.section, span(of.span), of.score, of.verdict.value


def failure(one: "Failure") -> models.FailureWire:
    return models.FailureWire(
        source=one.source,
        document_id=one.document_id,
        item=one.item,
        link=one.link,
        reason=one.reason,
        tries=one.tries,
        last_at=one.last_at,
        next_try=one.next_try,
    )


def audit_entry(entry: "AuditEntry") -> models.AuditEntryResponse:
    return models.AuditEntryResponse(
        id=entry.id,
        at=entry.at,
        actor=entry.actor,
        action=entry.action,
        source=entry.subject,
        outcome=entry.outcome,
        detail=dict(entry.detail),
    )


def ran(run: "Run") -> models.RunWire:
    return models.RunWire(
        id=run.id,
        kind=run.kind,
        state=run.state,
        stage=run.stage,
        item=run.item,
        counts=dict(run.counts),
        error=run.error,
        waiting_for=run.waiting_for,
        next_try=run.next_try,
        decision=dict(run.decision) if run.decision else None,
        started_at=run.started_at,
        finished_at=run.finished_at,
    )


def progress(one: "Progress") -> models.ProgressWire:
    return models.ProgressWire(
        source=one.source,
        stage=one.stage,
        item=one.item,
        done=one.done,
        total=one.total,
        rate=round(one.rate, 2),
    )


def synced(name: str, report: "Report", error: str | None) -> models.SyncWire:
    return models.SyncWire(
        source=name,
        documents=report.documents,
        chunks=report.chunks,
        embedded=report.embedded,
        unchanged=report.unchanged,
        amended=report.amended,
        deleted=report.deleted,
        restored=report.restored,
        unreadable=tuple(
            models.UnreadableWire(item=one.item, reason=one.reason) for one in report.unreadable
        ),
        unreadable_count=report.unreadable_count,
        error=error,
        seconds={stage: round(value, 3) for stage, value in report.seconds.items()},
    )


def listed(items: Iterable[models.Wire]) -> list[dict[str, object]]:
    return [item.model_dump(mode="json") for item in items]
