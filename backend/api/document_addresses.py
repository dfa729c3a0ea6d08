"""Where a person opens a source of an answer."""

from dataclasses import dataclass

from backend.chat.citations.citation_processor import CitationInfo, SourceKind
from backend.chat.passages import QuotedPassage
from backend.chat.readable_ids import is_sent_picture, quote_id

_ELSEWHERE = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class SourceAddresses:
    server: str
    """The address of this server, without a path."""

    def find(self, source: CitationInfo | QuotedPassage) -> str:
        """Return where a source is; its page here where no browser opens that. What came with the request has no page."""
        if source.link.lower().startswith(_ELSEWHERE):
            return source.link
        if isinstance(source, CitationInfo) and source.kind is SourceKind.MEMORY:
            return f"{self.server}/memories"
        if is_sent_picture(source.document_id):
            return f"{self.server}/"
        return f"{self.server}/document/{quote_id(source.document_id)}"
