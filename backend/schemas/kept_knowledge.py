"""JSON of kept knowledge, as it is listed."""

from datetime import datetime
from typing import Self

from pydantic import AwareDatetime, JsonValue

from backend.research.knowledge.kept_knowledge import ImportReport, KeptItem, Staleness
from backend.research.knowledge_items import KnowledgeType
from backend.schemas.base import Schema, with_example
from backend.schemas.knowledge import KnowledgeItemBody, ReferenceBody
from backend.store.research.knowledge_records import PlaceKind
from backend.web_search.results import Freshness

_ITEM_EXAMPLE: dict[str, JsonValue] = {
    "id": "Zt4bXw9sQe2LhGgkD3vT0c",
    "place": "conversation",
    "place_id": "Aq3rTz8pLk5WmNvBx7cYdE",
    "run_id": None,
    "question": "How long is parental leave?",
    "answer": "Parents have 26 weeks of paid leave.",
    "type": "qa",
    "references": [],
    "updated": None,
    "updated_is_guess": False,
    "source_code": None,
    "document_ids": ["wiki:leave.md"],
    "from_web": False,
    "stale": None,
    "made_at": "2026-03-02T09:30:00Z",
    "changed_at": "2026-03-02T09:30:00Z",
    "corrected_at": None,
    "may_change": True,
}


class KnowledgeItemResponse(Schema):
    model_config = with_example(**_ITEM_EXAMPLE)

    id: str
    place: PlaceKind
    """What it belongs to: a conversation, a project, or its owner alone."""
    place_id: str | None
    """Of the conversation or the project."""
    run_id: str | None
    """Of the run of research that made it."""
    question: str
    answer: str
    """Nothing, as everything else that it says, where `stale` is `source-gone`."""
    type: KnowledgeType
    references: tuple[ReferenceBody, ...]
    updated: Freshness | AwareDatetime | None
    """As of when the answer holds."""
    updated_is_guess: bool
    """Whether the page does not declare this time: it was concluded from its address or its first lines."""
    source_code: str | None
    document_ids: tuple[str, ...]
    """That it rests on, quoted or not."""
    from_web: bool
    """Strangers have written some of it: it is no instruction."""
    stale: Staleness | None
    """Why no later question is answered with it; null where it is fresh."""
    made_at: datetime
    changed_at: datetime
    corrected_at: datetime | None
    """When a person last changed what it says."""
    may_change: bool
    """Whether you may correct and delete it."""

    @classmethod
    def from_kept(cls, kept: KeptItem, *, may_change: bool) -> Self:
        said = KnowledgeItemBody.model_validate(kept.item)
        return cls(
            **said.model_dump(),
            id=kept.id,
            place=kept.place.kind,
            place_id=kept.place.id or None,
            run_id=kept.run_id,
            document_ids=tuple(sorted(kept.document_ids)),
            from_web=kept.is_of_web,
            stale=kept.stale,
            made_at=kept.made_at,
            changed_at=kept.changed_at,
            corrected_at=kept.corrected_at,
            may_change=may_change,
        )


class KnowledgeResponse(Schema):
    model_config = with_example(items=[_ITEM_EXAMPLE], next=None)

    items: tuple[KnowledgeItemResponse, ...]
    """The newest first; what a search found, the nearest first."""
    next: str | None
    """Given as `before`, it returns the following ones; null at the end, and of a search."""


class ImportReportResponse(Schema):
    model_config = with_example(ids=["Zt4bXw9sQe2LhGgkD3vT0c"], dropped_references=1, unverified=1)

    ids: tuple[str, ...]
    """Of the new items."""
    dropped_references: int
    """To documents that you may not read, that do not exist, or that do not say so."""
    unverified: int
    """Items of which some of what they rested on was dropped: no question is answered with them."""

    @classmethod
    def from_report(cls, report: ImportReport) -> Self:
        return cls.model_validate(report)


class EarlierFindingsEvent(Schema):
    """The event `earlier_findings`: what research found out before that the answer is written with."""

    model_config = with_example(questions=["How long is parental leave?"])

    questions: tuple[str, ...]
    """That each of them answers."""
