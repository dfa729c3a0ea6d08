"""Process the citations of a streamed answer: `[1]` becomes a link to document 1, and an event.

The links of citations are ours, whatever address the model wrote behind a marker. A number that no
document has claims a source that does not exist: it is removed, but left alone in code.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import TypeAlias

from backend.chat.citations.cited_sentences import CitedSentence, MarkerOffset, cited_sentences
from backend.chat.citations.marker_parser import Marker, MarkerScanner, Piece
from backend.chat.citations.uncited import find_uncited
from backend.search.models import SearchResult
from indexing.text.markdown_links import safe_link


class CitationMode(Enum):
    HYPERLINK = auto()
    """`[1]` becomes `[[1]](link)`; a number without a document is removed, as in `REMOVE`."""
    REMOVE = auto()
    """`[1]` is removed, with the blank before it if that is not needed."""
    KEEP_MARKERS = auto()
    """The text stays as it is; a number without a document is text."""


class SourceKind(StrEnum):
    """What a citation leads to."""

    DOCUMENT = "document"
    """A document of the index."""
    FILE = "file"
    """One that came with the message, or belongs to its project or assistant."""
    WEB = "url"
    """A page of the open web, which anybody may read; its id is its address."""
    MEMORY = "memory"
    """What the asker asked to remember."""
    RESEARCH = "research"
    """What research found out before, and is kept; what it rests on, the answer rests on too."""
    PICTURE = "image"


@dataclass(frozen=True, slots=True)
class CitedDocument:
    document_id: str
    title: str
    link: str
    """Empty if there is nothing to open."""
    kind: SourceKind = SourceKind.DOCUMENT


@dataclass(frozen=True, slots=True)
class CitationInfo:
    """The first citation of a document; comes before the first link to it."""

    number: int
    document_id: str
    title: str
    link: str
    """As `safe_link` escapes it."""
    kind: SourceKind = SourceKind.DOCUMENT


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
        if token is None:
            return iter(self._end())
        return iter(self._process(self._scanner.feed(token)))

    def _end(self) -> list[CitedText]:
        pieces = self._scanner.end()
        self._scanner = MarkerScanner()
        return [*self._process(pieces), *self._blanks.end()]

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

    def get_uncited_sentences(self) -> list[str]:
        """Return the sentences that state something and cite nothing, in the order of the text."""
        return find_uncited(self.get_plain_text(), self._marks)

    def _process(self, pieces: Iterable[Piece]) -> list[CitedText]:
        decided: list[CitedText] = []
        for piece in pieces:
            decided += self._text(piece) if isinstance(piece, str) else self._marker(piece)
        return decided

    def _marker(self, marker: Marker) -> Sequence[CitedText]:
        known = {n: self._mapping[n] for n in marker.numbers if n in self._mapping}
        self._marks += [MarkerOffset(self._length, number) for number in known]
        fresh = {n: document for n, document in known.items() if n not in self._seen}
        self._seen |= fresh
        match self._mode:
            case CitationMode.KEEP_MARKERS:
                return [marker.text] if known else self._text(marker.text)
            case CitationMode.HYPERLINK if known:
                infos = [_info(number, document) for number, document in fresh.items()]
                blank = self._blanks.keep()
                self._last = blank or self._last
                return [*blank, *infos, self._links(known)]
            case _:
                self._blanks.remove()
                return []

    def _links(self, documents: Mapping[int, CitedDocument]) -> str:
        links = [_link(number, document) for number, document in documents.items()]
        # Right after an exclamation mark the link would be an image.
        gap = " " if self._last == "!" else ""
        self._last = _WITHOUT_LINK if links[-1][-1] == "]" else ")"
        return gap + " ".join(links)

    def _text(self, text: str) -> Sequence[str]:
        self._plain.append(text)
        self._length += len(text)
        if self._mode is not CitationMode.KEEP_MARKERS:
            text = self._blanks.text(text)
        if not text:
            return []
        # Right after a citation without a link an address would become its link.
        escape = "\\" if self._last == _WITHOUT_LINK and text[0] in "(:" else ""
        self._last = text[-1]
        return [escape + text]


def _info(number: int, document: CitedDocument) -> CitationInfo:
    link = safe_link(document.link)
    return CitationInfo(number, document.document_id, document.title, link, document.kind)


def _link(number: int, document: CitedDocument) -> str:
    target = safe_link(document.link)
    return f"[[{number}]]({target})" if target else f"[{number}]"


class _BlankRemover:
    """Removes the one blank before a removed marker if it is not needed."""

    def __init__(self) -> None:
        self._blank = ""
        self._removed = False
        self._line_start = True

    def text(self, text: str) -> str:
        """Add text, and return what is certain to stay."""
        if self._removed:
            text = self._after_removed(text)
        text, self._blank = self._blank + text, ""
        if text.endswith((" ", "\t")):
            text, self._blank = text[:-1], text[-1]
        if text:
            self._line_start = text[-1] == "\n"
        return text

    def remove(self) -> None:
        """Note that a marker stood here."""
        self._removed = True

    def keep(self) -> str:
        """Return the blank before something that stays."""
        blank, self._blank = self._blank, ""
        self._removed = self._line_start = False
        return blank

    def end(self) -> str:
        """Return the blank at the end of the text, unless it is not needed."""
        blank = "" if self._removed else self._blank
        self._blank, self._removed = "", False
        return blank

    def _after_removed(self, text: str) -> str:
        self._removed = False
        if text[0].isspace() or text[0] in _CLOSING:
            self._blank = ""
            return text.removeprefix(" ") if self._line_start else text
        return text


_WITHOUT_LINK = "[n]"
_CLOSING = ".,;:!?)]}。、，．；：！？）」』】"


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
