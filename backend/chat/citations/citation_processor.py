"""Process the citations of a streamed answer: `[1]` becomes a link to document 1, and an event.

Only numbers mapped to a document are changed. A marker without any is text, and stays as it was
written. In a list with mapped and unmapped numbers the former are cited and the latter stay as `[n]`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias
from urllib.parse import quote

from backend.chat.citations.cited_sentences import CitedSentence, MarkerOffset, cited_sentences
from backend.chat.citations.marker_parser import Marker, MarkerScanner
from backend.search.models import SearchResult


class CitationMode(Enum):
    HYPERLINK = auto()
    """`[1]` becomes `[[1]](link)`."""
    REMOVE = auto()
    """`[1]` is removed, with the blank before it if that is not needed."""
    KEEP_MARKERS = auto()
    """The text stays as it is."""


@dataclass(frozen=True, slots=True)
class CitedDocument:
    document_id: str
    title: str
    link: str
    """Empty if there is nothing to open."""


@dataclass(frozen=True, slots=True)
class CitationInfo:
    """The first citation of a document; comes before the first link to it."""

    number: int
    document_id: str
    title: str
    link: str


CitedText: TypeAlias = str | CitationInfo


class DynamicCitationProcessor:
    """Turns the tokens of an answer into text with citations; documents may be added meanwhile.

    The resulting text is the same however the answer is split into tokens.
    """

    def __init__(self, mode: CitationMode = CitationMode.HYPERLINK) -> None:
        self._mode = mode
        self._mapping: dict[int, CitedDocument] = {}
        self._seen: dict[int, CitedDocument] = {}
        self._scanner = MarkerScanner()
        self._blanks = _BlankRemover()
        self._last = ""
        self._plain: list[str] = []
        self._length = 0
        self._marks: list[MarkerOffset] = []

    def update_citation_mapping(self, mapping: Mapping[int, CitedDocument]) -> None:
        """Add documents by their numbers; a number in use keeps its document."""
        # An earlier document keeps its number: the model may have cited it already.
        self._mapping = {**mapping, **self._mapping}

    def process_token(self, token: str | None) -> Iterator[CitedText]:
        """Return what is decided after this token; None ends the text and returns what was held back.

        After None a new text may begin, with the same documents.
        """
        if token is not None:
            pieces = self._scanner.feed(token)
        else:
            pieces = self._scanner.end()
            self._scanner = MarkerScanner()
        decided = [out for piece in pieces for out in self._process(piece)]
        if token is None and (blank := self._blanks.end()):
            decided.append(blank)
        return iter(decided)

    def get_seen_citations(self) -> dict[int, CitedDocument]:
        """Return the documents that were cited, by number, in the order of their first citation."""
        return dict(self._seen)

    def get_cited_documents(self) -> list[CitedDocument]:
        """Return the cited documents, each once, in the order of their first citation."""
        return list({document.document_id: document for document in self._seen.values()}.values())

    def get_next_citation_number(self) -> int:
        return max(self._mapping, default=0) + 1

    def get_plain_text(self) -> str:
        """Return the whole text without its citations."""
        return "".join(self._plain)

    def get_cited_sentences(self) -> list[CitedSentence]:
        """Return every citation with the sentence that it supports, in the order of the text."""
        return cited_sentences(self.get_plain_text(), self._marks)

    def _process(self, piece: str | Marker) -> Iterator[CitedText]:
        if isinstance(piece, str):
            yield from self._text(piece)
        elif not any(number in self._mapping for number in piece.numbers):
            yield from self._text(piece.text)
        else:
            yield from self._citation(piece)

    def _text(self, text: str) -> Iterator[str]:
        self._plain.append(text)
        self._length += len(text)
        if self._mode is CitationMode.REMOVE:
            text = self._blanks.text(text)
        if text:
            self._last = text[-1]
            yield text

    def _citation(self, marker: Marker) -> Iterator[CitedText]:
        for number in marker.numbers:
            if document := self._mapping.get(number):
                self._marks.append(MarkerOffset(self._length, number))
                yield from self._announce(number, document)
        if text := self._format(marker):
            self._last = text[-1]
            yield text

    def _announce(self, number: int, document: CitedDocument) -> Iterator[CitationInfo]:
        if number in self._seen:
            return
        self._seen[number] = document
        if self._mode is CitationMode.HYPERLINK:
            yield CitationInfo(number, document.document_id, document.title, document.link)

    def _format(self, marker: Marker) -> str:
        match self._mode:
            case CitationMode.KEEP_MARKERS:
                return marker.text
            case CitationMode.REMOVE:
                unknown = [n for n in marker.numbers if n not in self._mapping]
                return self._blanks.marker(" ".join(f"[{number}]" for number in unknown))
            case CitationMode.HYPERLINK:
                # Right after an exclamation mark the link would be an image.
                gap = " " if self._last == "!" else ""
                return gap + " ".join(self._link(number) for number in marker.numbers)

    def _link(self, number: int) -> str:
        document = self._mapping.get(number)
        target = safe_link(document.link) if document else ""
        return f"[[{number}]]({target})" if target else f"[{number}]"


class _BlankRemover:
    """Removes the one blank before a removed marker if it is not needed."""

    def __init__(self) -> None:
        self._blank = ""
        self._removed = False
        self._line_start = True

    def text(self, text: str) -> str:
        if self._removed:
            if text[0].isspace() or text[0] in _CLOSING:
                text = text.removeprefix(" ") if self._line_start else text
                self._blank = ""
            self._removed = False
        return self._keep_last_blank(self._blank + text)

    def marker(self, left: str) -> str:
        """Process a marker of which `left` remains."""
        if not left:
            self._removed = True
            return ""
        return self._out(self.end() + left)

    def end(self) -> str:
        blank = "" if self._removed else self._blank
        self._blank, self._removed = "", False
        return blank

    def _keep_last_blank(self, text: str) -> str:
        self._blank = text[-1:] if text[-1:] in {" ", "\t"} else ""
        return self._out(text[: len(text) - len(self._blank)])

    def _out(self, text: str) -> str:
        if text:
            self._line_start = text[-1] == "\n"
        return text


_CLOSING = ".,;:!?)]}。、，．；：！？）」』】"
_SCRIPT_SCHEMES = ("javascript:", "data:", "vbscript:")
_UNSAFE = re.compile(r"[\s()<>\[\]|\\\"`^{}\x00-\x1f\x7f]")


def safe_link(link: str) -> str:
    """Escape a link for Markdown, tables included; empty for one that would run a script."""
    escaped = _UNSAFE.sub(lambda found: quote(found.group(), safe=""), link.strip())
    return "" if escaped.lower().startswith(_SCRIPT_SCHEMES) else escaped


def update_citation_processor_from_tool_response(
    processor: DynamicCitationProcessor, result: SearchResult
) -> None:
    """Make the documents of a search citable under the numbers that the model was shown."""
    processor.update_citation_mapping(
        {
            doc.number: CitedDocument(doc.document_id, doc.title, doc.link)
            for doc in reversed(result.docs)  # of several sections of a document, link to the best
        }
    )
