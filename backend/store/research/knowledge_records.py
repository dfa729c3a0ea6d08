"""What is kept of an item of knowledge, and what becomes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from backend.store.owner import ConversationOwner

MOST_ITEMS = 1_000
"""Of one conversation, of one project, or of one person beside these; and of a file that is exported or imported."""
LONGEST_TEXT = 400_000
"""Characters of a question, an answer, or any other text of an item."""

Json: TypeAlias = Mapping[str, Any]
PlaceKind: TypeAlias = Literal["own", "conversation", "project"]


@dataclass(frozen=True, slots=True)
class KnowledgePlace:
    """What an item belongs to."""

    kind: PlaceKind
    id: str = ""
    """Of the conversation or the project."""


OWN = KnowledgePlace("own")
"""Its owner alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSource:
    """A document that an item rests on."""

    document_id: str
    content_hash: str | None
    """Of the document as it was; None where it was unknown even then."""
    checked_hash: str | None
    """Of the document as `quotes_stand` was found out for; None where it never was."""
    quotes_stand: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    question: str
    answer: str
    type: str
    updated: str | None
    """As of when the answer holds: a time (ISO 8601, behind "guessed " where it is a guess), or an age of results."""
    source_code: str | None
    quotes: Sequence[Json]
    """The references of the answer."""
    pages: Sequence[Json]
    """The pages of the web that it rests on: `url`, and `text_hash` of their text."""
    sources: Sequence[ItemSource]
    unverified: bool = False
    """An import has dropped some of what it rests on."""
    made_at: datetime
    corrected_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    id: str
    owner: ConversationOwner
    place: KnowledgePlace
    run_id: str | None
    question: str
    answer: str
    type: str
    updated: str | None
    source_code: str | None
    quotes: Sequence[Json]
    pages: Sequence[Json]
    sources: Sequence[ItemSource]
    unverified: bool
    made_at: datetime
    changed_at: datetime
    corrected_at: datetime | None

    @property
    def document_ids(self) -> frozenset[str]:
        return frozenset(one.document_id for one in self.sources)


@dataclass(frozen=True, slots=True)
class ItemPosition:
    """The last item of a page of the list."""

    made_at: datetime
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    question: str
    answer: str
    quotes: Sequence[Json]
    sources: Sequence[ItemSource]
