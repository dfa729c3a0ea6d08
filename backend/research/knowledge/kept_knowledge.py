"""What research has found out, as it is kept: with what it rests on, and whether that still bears it out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from backend.research.knowledge_items import KnowledgeItem, KnowledgeType
from backend.store.owner import ConversationOwner
from backend.store.research.knowledge_records import KnowledgePlace

WEB_AGE = timedelta(days=90)
"""After which what rests on pages of the web is stale, where nothing else is set."""
_OF_THE_WEB = {KnowledgeType.URL, KnowledgeType.SIDE_INFO}


class Staleness(StrEnum):
    """Why an item is not used as fresh."""

    SOURCE_CHANGED = "source-changed"
    """A document that it rests on has changed, and no longer says what was quoted of it."""
    SOURCE_GONE = "source-gone"
    """A document that it rests on was deleted: nobody can say any more who may read the item, so that nobody does."""
    TOO_OLD = "too-old"
    """It rests on pages of the web, which are not read again, and was found or corrected too long ago."""
    UNVERIFIED = "unverified"
    """It was imported, and some of what it rested on, or all, is nothing that the importer may read and check."""


@dataclass(frozen=True, slots=True)
class PageVersion:
    """A page of the web that an item rests on, as it was."""

    url: str
    text_hash: str
    """A digest of what it said then, by whoever learned the item."""


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """A document that an item rests on, as it was."""

    document_id: str
    content_hash: str | None
    """None where it was unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedItem:
    """An item that is to be kept."""

    item: KnowledgeItem
    document_ids: frozenset[str] = frozenset()
    """That it rests on besides those that its references quote: such as what an answer of the conversation rests on."""
    pages: tuple[PageVersion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptItem:
    """An item that whoever asks may read."""

    id: str
    owner: ConversationOwner
    place: KnowledgePlace
    run_id: str | None
    item: KnowledgeItem
    """Says nothing where `is_gone`."""
    documents: tuple[DocumentVersion, ...]
    pages: tuple[PageVersion, ...]
    stale: Staleness | None
    unverified: bool
    made_at: datetime
    changed_at: datetime
    corrected_at: datetime | None

    @property
    def is_gone(self) -> bool:
        return self.stale is Staleness.SOURCE_GONE

    @property
    def is_of_web(self) -> bool:
        """Whether strangers have written some of it: it is quoted, and no instruction."""
        quotes_page = any(one.document_id is None and one.url for one in self.item.references)
        return bool(self.pages) or quotes_page or self.item.type in _OF_THE_WEB

    @property
    def holds_as_of(self) -> datetime:
        """When it was found, or last corrected by a person."""
        return self.corrected_at or self.made_at

    @property
    def document_ids(self) -> frozenset[str]:
        return frozenset(one.document_id for one in self.documents)

    @property
    def text(self) -> str:
        """What it is searched by."""
        return f"{self.item.question}\n{self.item.answer}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedItem:
    """An item of a file that was exported."""

    item: KnowledgeItem
    documents: tuple[DocumentVersion, ...] = ()
    pages: tuple[PageVersion, ...] = ()
    unverified: bool = False
    made_at: datetime | None = None
    corrected_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    ids: Sequence[str]
    dropped_references: int
    """To documents that the importer may not read, that do not exist, or that do not say so: these are not distinguished."""
    unverified: int
    """Items of which some of what they rested on was dropped, or that quote no document where others read them."""
