"""The sentences of found sections that may answer, and how a person reads them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import regex

from backend.search.models import InferenceSection
from connectors.document import Span
from connectors.extraction import media_types
from indexing.chunking.chunk import Chunk
from indexing.chunking.sentences import sentences
from indexing.text.markdown_links import labels_alone
from indexing.text.tokenizer import words

FEWEST_WORDS = 2
FEWEST_WORDS_OF_A_LINE = 3
LONGEST_LABEL = 60
"""Characters; a shorter line that neither ends like a sentence nor names a value is a heading."""
LONGEST_TOLD = 600
"""Characters; what has no sentences of its own (a log, a list without ends) is told so far."""

_MARKS = regex.compile(r"^(?:[-*+>•] +|[>•])++")
_RULER = regex.compile(r"\|[\s:|-]+\|?")
_LIST_ITEM = regex.compile(r"[-*•+>\d]")
_END = regex.compile(r"[.!?。！？…:;：；][\"'”’»)\]」』）]*$")
_LEANS_BACK = regex.compile(
    r"(?:This|That|These|Those|It|They|He|She|Its|Their|His|Her|Both|Otherwise|Such"
    r"|Dies(?:e[mnrs]?)?|Sie|Er|Es)\b|这|那|它|これ|それ|その"
)
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"


@dataclass(frozen=True)
class Candidate:
    """A sentence that may answer; with the one before it where it leans on that."""

    section: InferenceSection
    chunk: Chunk
    span: Span
    """In the text of the chunk's section."""
    text: str
    """Verbatim."""

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(words(self.text))

    @cached_property
    def readable(self) -> str:
        """In one line that is safe to print; a table row as `column: cell; column: cell`, a link as its label."""
        text = _read(_one_line(self.text), self.chunk)
        if text.startswith("|"):
            return _row(text, header_of(self.chunk))
        return _MARKS.sub("", text)

    @cached_property
    def framed(self) -> str:
        """With the title and the headings above it, as it is compared with the question."""
        return f"{context(self.chunk)}: {self.readable}"


def context(chunk: Chunk) -> str:
    """What the sentences of a chunk are about: its title and headings, each once."""
    return " ".join(dict.fromkeys((chunk.title, *chunk.heading_path)))


def candidates(sections: Sequence[InferenceSection]) -> list[Candidate]:
    """In the order of the sections; each chunk once, though several sections hold it."""
    chunks = {
        chunk.key: (section, chunk) for section in reversed(sections) for chunk in section.chunks
    }
    ordered = {chunk.key: chunks[chunk.key] for section in sections for chunk in section.chunks}
    return [found for section, chunk in ordered.values() for found in _of_chunk(section, chunk)]


def _of_chunk(section: InferenceSection, chunk: Chunk) -> Iterator[Candidate]:
    header = " | ".join(header_of(chunk))
    before: Span | None = None
    for span in sentences(chunk.text):
        text = span.of(chunk.text)
        if _is_frame(_read(text, chunk), chunk) or (header and " | ".join(_cells(text)) == header):
            before = None
            continue
        leans = before is not None and _LEANS_BACK.match(text) is not None
        whole = Span(before.start, span.end) if before and leans else span
        whole = Span(whole.start, min(whole.end, whole.start + LONGEST_TOLD))
        start = chunk.span.start
        placed = Span(start + whole.start, start + whole.end)
        yield Candidate(section, chunk, placed, whole.of(chunk.text))
        before = span


def _read(text: str, chunk: Chunk) -> str:
    """Of Markdown, a link is what its label says."""
    return labels_alone(text) if chunk.media_type == media_types.MARKDOWN else text


def _is_frame(text: str, chunk: Chunk) -> bool:
    """A heading, a table's ruler, a label or a fragment: nothing that a sentence says."""
    ended = _END.search(text) is not None
    fewest = FEWEST_WORDS if ended else FEWEST_WORDS_OF_A_LINE
    if text.startswith("#") or _RULER.fullmatch(text) or len(words(text)) < fewest:
        return True
    bare = _one_line(text).strip("#*- ").casefold()
    if bare in {_one_line(each).casefold() for each in (chunk.title, *chunk.heading_path)}:
        return True
    is_line = not ended and not text.startswith("|") and not _LIST_ITEM.match(text)
    return is_line and len(text) < LONGEST_LABEL and ":" not in text


def header_of(chunk: Chunk) -> list[str]:
    """The column names of the table that the chunk is of; none where it is of no table."""
    rows = [line for line in chunk.embedded_text.splitlines() if line.startswith("|")]
    return _cells(rows[0]) if rows else []


def _row(row: str, header: Sequence[str]) -> str:
    cells = _cells(row)
    if len(header) != len(cells):
        return "; ".join(cell for cell in cells if cell)
    return "; ".join(
        f"{name}: {cell}" if name else cell
        for name, cell in zip(header, cells, strict=True)
        if cell
    )


def _cells(row: str) -> list[str]:
    return [
        _one_line(cell).replace("\\|", "|")
        for cell in regex.split(r"(?<!\\)\|", row.strip().strip("|"))
    ]


def _one_line(text: str) -> str:
    """Without line breaks, control characters and characters that turn the direction of text."""
    safe = text if text.isprintable() else "".join(map(_printable, text))
    return " ".join(safe.split())


def _printable(character: str) -> str:
    return character if character.isprintable() or character in _JOINERS else " "
