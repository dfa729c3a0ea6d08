"""Making a document of an entry."""

import json
from dataclasses import dataclass
from hashlib import sha256

from connectors.access import Access
from connectors.connector import Unreadable
from connectors.document import Document, Place, Section
from connectors.extraction.html import extract_html_sections
from connectors.extraction.registry import HTML
from connectors.extraction.result import ExtractionError, make_section
from connectors.sources.feed.entries import Feed, FeedEntry
from connectors.text_cleaning import shorten_title

# To be raised when the same entry yields another document than before.
_FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryReader:
    """Makes documents of the entries of a feed."""

    source: str
    feed_key: str
    feed: Feed
    feed_name: str
    """Shown where the feed has no title."""
    feed_address: str
    """Shown where an entry has no page."""
    access: Access

    def document_id(self, entry: FeedEntry) -> str:
        return f"{self.source}:{self.feed_key}/{entry.key}"

    def to_document(self, entry: FeedEntry) -> Document | Unreadable:
        name = entry.title or entry.link or entry.key
        try:
            sections = extract_html_sections(entry.html) or _make_sections(entry)
        except ExtractionError as error:
            return Unreadable(
                document_id=self.document_id(entry),
                item=name,
                reason=str(error),
                link=entry.link or None,
                version=make_version(entry),
            )
        feed_name = self.feed.title or self.feed_name
        return Document(
            id=self.document_id(entry),
            source=self.source,
            title=shorten_title(name),
            sections=sections,
            link=entry.link or self.feed.link or self.feed_address,
            media_type=HTML,
            access=self.access,
            version=make_version(entry),
            metadata={
                "feed": feed_name,
                **({"category": entry.categories} if entry.categories else {}),
            },
            owners=entry.authors,
            created_at=entry.published,
            updated_at=entry.updated or entry.published,
            parents=(feed_name,),
        )


def _make_sections(entry: FeedEntry) -> tuple[Section, ...]:
    """Make a section of the title: many feeds only name pages, and then it is what an entry says."""
    if not entry.title:
        raise ExtractionError("the entry has neither a title nor a text")
    return (make_section(entry.title, Place()),)


def make_version(entry: FeedEntry) -> str:
    """Return a hash of what the entry says."""
    values = [
        _FORMAT_VERSION,
        entry.title,
        entry.link,
        entry.html,
        [(one.name, one.email) for one in entry.authors],
        entry.categories,
        str(entry.published),
        str(entry.updated),
    ]
    return sha256(json.dumps(values).encode()).hexdigest()[:32]
