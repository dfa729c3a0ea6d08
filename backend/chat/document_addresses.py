"""Where a person opens a source of an answer."""

from dataclasses import dataclass
from urllib.parse import quote

from backend.chat.citations.citation_processor import CitationInfo, SourceKind
from backend.chat.passages import QuotedPassage
from backend.chat.readable_ids import find_knowledge_page, is_sent_picture

_DOTS = {".", ".."}
_ELSEWHERE = ("http://", "https://")


def quote_id(document_id: str) -> str:
    """Return the id of a document as a part of a path."""
    # Browsers resolve "." and ".." in a path before they ask, and a backslash is a slash to them.
    resolved = not _DOTS.isdisjoint(document_id.split("/"))
    return quote(document_id, safe=":" if resolved else "/:", errors="replace")


@dataclass(frozen=True, slots=True)
class SourceAddresses:
    server: str
    """The address of this server, without a path."""

    def find(self, source: CitationInfo | QuotedPassage) -> str:
        """Return where a source is; its page here where no browser opens that. What came with the request has no page."""
        kind = source.kind if isinstance(source, CitationInfo) else SourceKind.DOCUMENT
        return self.find_by_kind(source.document_id, source.link, kind)

    def find_by_kind(self, document_id: str, link: str, kind: str) -> str:
        """Return the same of a source of that `SourceKind`."""
        if link.lower().startswith(_ELSEWHERE):
            return link
        if kind == SourceKind.MEMORY:
            return f"{self.server}/memories"
        if kind == SourceKind.RESEARCH:
            return f"{self.server}{find_knowledge_page(document_id)}"
        if is_sent_picture(document_id):
            return f"{self.server}/"
        return f"{self.server}/document/{quote_id(document_id)}"
