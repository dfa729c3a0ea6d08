"""JSON of runs and syncs of a source."""

from datetime import datetime
from typing import TYPE_CHECKING, Self

from backend.schemas.base import Rate, Schema, with_example

if TYPE_CHECKING:
    from indexing.ingestion.progress import Report


class EmbeddingResponse(Schema):
    """A document that is being embedded."""

    model_config = with_example(item="Warranty", done=128, total=310)

    item: str
    done: int
    """Its passages that are embedded."""
    total: int


class RunResponse(Schema):
    model_config = with_example(
        id=7,
        kind="incremental",
        state="done",
        stage="listing",
        item="handbook:support/warranty.docx",
        counts={"documents": 2, "deleted": 1},
        error=None,
        waiting_for=None,
        next_try=None,
        decision=None,
        started_at="2025-11-03T09:30:00Z",
        finished_at="2025-11-03T09:30:00Z",
        done=45,
        total=45,
        embedding=None,
    )

    id: int
    kind: str
    state: str
    stage: str
    item: str | None
    counts: dict[str, int]
    error: str | None
    waiting_for: str | None
    next_try: datetime | None
    """When a waiting run is tried again."""
    decision: dict[str, int] | None
    """What a person must decide: how many documents are `held`, `listed`, `missing`."""
    started_at: datetime
    finished_at: datetime | None
    done: int = 0
    """Documents that the present stage has dealt with."""
    total: int | None = None
    """Documents that the stage deals with, where that is known."""
    embedding: EmbeddingResponse | None = None


class UnreadableResponse(Schema):
    item: str
    reason: str


class ProgressEvent(Schema):
    """The event `progress` of a sync."""

    model_config = with_example(
        source="handbook",
        stage="indexing",
        item="Warranty",
        done=12,
        total=45,
        rate=8.4,
        text="Indexing 12 of 45 documents · 8.4 a second · embedding Warranty",
    )

    source: str
    stage: str
    item: str | None
    done: int
    total: int | None
    rate: Rate
    """Documents per second."""
    text: str = ""
    """All of it in words."""


class SyncReport(Schema):
    """The event `done` of a sync, and the output of `quarry sync`."""

    model_config = with_example(
        source="handbook",
        documents=2,
        chunks=9,
        embedded=9,
        unchanged=0,
        amended=0,
        deleted=1,
        restored=0,
        unreadable=[{"item": "scans/lease.pdf", "reason": "it contains no text"}],
        unreadable_count=1,
        error=None,
        seconds={"read": 0.02, "chunk": 0.01, "embed": 0.3, "write": 0.05},
    )

    source: str
    documents: int
    chunks: int
    embedded: int
    unchanged: int
    amended: int
    deleted: int
    restored: int
    unreadable: tuple[UnreadableResponse, ...]
    unreadable_count: int
    error: str | None
    seconds: dict[str, float]

    @classmethod
    def from_report(cls, source: str, report: "Report", error: str | None) -> Self:
        return cls(
            source=source,
            documents=report.documents,
            chunks=report.chunks,
            embedded=report.embedded,
            unchanged=report.unchanged,
            amended=report.amended,
            deleted=report.deleted,
            restored=report.restored,
            unreadable=tuple(map(UnreadableResponse.model_validate, report.unreadable)),
            unreadable_count=report.unreadable_count,
            error=error,
            seconds={stage: round(value, 3) for stage, value in report.seconds.items()},
        )
