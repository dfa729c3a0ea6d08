"""Citations in a streamed answer: `[1]` becomes a link to document 1, and is told of.

Only numbers that lead to a document are touched. A marker none of whose numbers does is text, and
stays as it was written. In a list with some that do and some that do not, each number stands for
itself: the former are cited, the latter stay as `[n]`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias
from urllib.parse import quote

from backend.chat.citations.cited_sentences import CitedSentence, Mark, cited_sentences
from backend.chat.citations.marker_parser import Marker, MarkerScanner
from backend.search.models import SearchResult


class CitationMode(Enum):
    HYPERLINK = auto()
    """`[1]` becomes `[[1]](link)`."""
    REMOVE = auto()
    """`[1]` is taken out, with the blank before it where none is needed."""
    KEEP_MARKERS = auto()
    """The text stays as it is."""


@dataclass(frozen=True, slots=True)
class CitedDocument:
    document_id: str
    title: str
    link: str
    """Empty where there is nothing to open."""


@dataclass(frozen=True, slots=True)
class CitationInfo:
    """A document is cited for the first time; stands before the first link to it."""

    number: int
    document_id: str
    title: str
    link: str


CitedText: TypeAlias = str | CitationInfo


class DynamicCitationProcessor:
    """Tokens of an answer in, text with citations out; documents may be added on the way.

    The text that comes out is the same however the answer is cut into tokens.
    """

    def __init__(self, mode: CitationMode = CitationMode.HYPERLINK) -> None:
        self._mode = mode
        self._mapping: dict[int, CitedDocument] = {}
        self._seen: dict[int, CitedDocument] = {}
        self._scanner = MarkerScanner()
        self._blanks = _Blanks()
        self._last = ""
        self._plain: list[str] = []
        self._length = 0
        self._marks: list[Mark] = []

    def update_citation_mapping(self, mapping: Mapping[int, CitedDocument]) -> None:
        """Add documents by their numbers; a number that is taken keeps its document."""
        self._mapping = {**mapping, **self._mapping}

    def process_token(self, token: str | None) -> Iterator[CitedText]:
        """What can be told after this token; None tells all that was held back.

        After None a new text may begin, with the same documents.
        """
        if token is not None:
            pieces = self._scanner.feed(token)
        else:
            pieces = self._scanner.end()
            self._scanner = MarkerScanner()
        told = [out for piece in pieces for out in self._tell(piece)]
        if token is None and (blank := self._blanks.end()):
            told.append(blank)
        return iter(told)

    def get_seen_citations(self) -> dict[int, CitedDocument]:
        """The numbers that were cited and lead to a document, in the order of their first citation."""
        return dict(self._seen)

    def get_cited_documents(self) -> list[CitedDocument]:
        """The cited documents, each once, in the order of their first citation."""
        return list({document.document_id: document for document in self._seen.values()}.values())

    def get_next_citation_number(self) -> int:
        return max(self._mapping, default=0) + 1

    def get_plain_text(self) -> str:
        """All that was said, without its citations."""
        return "".join(self._plain)

    def get_cited_sentences(self) -> list[CitedSentence]:
        """Every citation with the sentence that it stands for, in the order of the text."""
        return cited_sentences(self.get_plain_text(), self._marks)

    def _tell(self, piece: str | Marker) -> Iterator[CitedText]:
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
                self._marks.append(Mark(self._length, number))
                yield from self._info(number, document)
        if text := self._shown(marker):
            self._last = text[-1]
            yield text

    def _info(self, number: int, document: CitedDocument) -> Iterator[CitationInfo]:
        if number in self._seen:
            return
        self._seen[number] = document
        if self._mode is CitationMode.HYPERLINK:
            yield CitationInfo(number, document.document_id, document.title, document.link)

    def _shown(self, marker: Marker) -> str:
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


class _Blanks:
    """Takes the one blank before a removed marker out with it, where none is needed."""

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
        """`left` is what remains of it."""
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
_NEVER_OPENED = ("javascript:", "data:", "vbscript:")
_UNSAFE = re.compile(r"[\s()<>\[\]|\\\"`^{}\x00-\x1f\x7f]")


def safe_link(link: str) -> str:
    """A link as it may stand in Markdown, in a table too; nothing for one that would run a script."""
    kept = _UNSAFE.sub(lambda found: quote(found.group(), safe=""), link.strip())
    return "" if kept.lower().startswith(_NEVER_OPENED) else kept


def update_citation_processor_from_tool_response(
    processor: DynamicCitationProcessor, result: SearchResult
) -> None:
    """Make the documents of a search citable, under the numbers that the model was shown."""
    processor.update_citation_mapping(
        {
            doc.number: CitedDocument(doc.document_id, doc.title, doc.link)
            for doc in reversed(result.docs)  # of several sections, the best gives the link
        }
    )
