"""The sources of reports, with what was read of each: what citations lead to, and are checked against."""

from dataclasses import dataclass
from datetime import datetime

from backend.chat.citations.citation_processor import CitedDocument, SourceKind


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text of a source that a model was shown."""

    text: str
    section: int = 0
    """Of the source, counted from 0."""
    start: int = 0
    """Where the text begins in that section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedSource:
    """A source under the number by which a text cites it."""

    number: int
    kind: SourceKind
    """A document of the index, a page of the web, or what research found out before."""
    document_id: str
    """Of a page: its address, in the one spelling that all share."""
    title: str
    url: str
    """Where a person reads it; empty where it has no address."""
    date: datetime | None = None
    """When it was published or last changed, where that is known."""
    texts: tuple[SourceText, ...] = ()
    rests_on: tuple[str, ...] = ()
    """Of an earlier finding: ids of the documents of the index that it says something of."""

    @property
    def cited_document(self) -> CitedDocument:
        return CitedDocument(self.document_id, self.title, self.url, self.kind)
