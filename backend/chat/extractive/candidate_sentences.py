"""Split found sections into sentences that may answer, and format them for a person."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import regex

from backend.search.models import InferenceSection
from connectors.document import Span
from connectors.extraction import registry
from indexing.chunking.chunk import Chunk, split_sentences
from indexing.text.markdown_links import strip_links
from indexing.text.tokenizer import words

MIN_WORDS = 2
MIN_WORDS_OF_LINE = 3
MAX_LABEL_CHARACTERS = 60
"""A shorter line that neither ends like a sentence nor names a value is taken for a heading."""
MAX_CHARACTERS = 600
"""Text without sentence ends (a log, a list) is cut here."""

_MARKS = regex.compile(r"^(?:[-*+>•] +|[>•])++")
_RULER = regex.compile(r"\|[\s:|-]+\|?")
_LIST_ITEM = regex.compile(r"[-*•+>\d]")
_END = regex.compile(r"[.!?。！？…:;：；][\"'”’»)\]」』）]*$")
_REFERS_BACK = regex.compile(
    r"(?:This|That|These|Those|It|They|He|She|Its|Their|His|Her|Both|Otherwise|Such"
    r"|Dies(?:e[mnrs]?)?|Sie|Er|Es)\b|这|那|它|これ|それ|その"
)
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"


@dataclass(frozen=True)
class Candidate:
    """A sentence that may answer, with the one before it if it refers back to that."""

    section: InferenceSection
    chunk: Chunk
    span: Span
    """In the text of the chunk's section."""
    text: str
    """As it stands in the document."""

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(words(self.text))

    @cached_property
    def display_text(self) -> str:
        """One line that is safe to print; a table row as `column: cell; column: cell`, a link as its label."""
        text = _without_markup(_to_one_line(self.text), self.chunk)
        if text.startswith("|"):
            return _format_row(text, table_header(self.chunk))
        return _MARKS.sub("", text)

    @cached_property
    def text_in_context(self) -> str:
        """The text after its title and headings, as it is compared with the question."""
        return f"{heading_context(self.chunk)}: {self.display_text}"


def heading_context(chunk: Chunk) -> str:
    """Return what the sentences of a chunk are about: its title and headings, each once."""
    return " ".join(dict.fromkeys((chunk.title, *chunk.heading_path)))


def distinct_texts(found: Sequence[Candidate]) -> list[str]:
    """Return the texts of the chunks of candidates, with their titles and headings."""
    chunks = {each.chunk.key: each.chunk for each in found}
    return [f"{heading_context(chunk)}\n{chunk.embedded_text}" for chunk in chunks.values()]


def find_candidates(sections: Sequence[InferenceSection]) -> list[Candidate]:
    """Return candidates in the order of the sections; each chunk counts once."""
    chunks = {
        chunk.key: (section, chunk) for section in reversed(sections) for chunk in section.chunks
    }
    ordered = {chunk.key: chunks[chunk.key] for section in sections for chunk in section.chunks}
    return [
        found for section, chunk in ordered.values() for found in _candidates_in(section, chunk)
    ]


def _candidates_in(section: InferenceSection, chunk: Chunk) -> Iterator[Candidate]:
    before: Span | None = None
    for span in split_sentences(chunk.text):
        text = span.of(chunk.text)
        if _is_unreadable(text, chunk):
            before = None
            continue
        refers_back = before is not None and _REFERS_BACK.match(text) is not None
        whole = Span(before.start, span.end) if before and refers_back else span
        yield _cut_candidate(section, chunk, whole)
        before = span


def split_readable(section: InferenceSection, chunk: Chunk) -> Iterator[Candidate]:
    """Yield each sentence of a chunk alone, without headings, labels and the structure of tables."""
    for span in split_sentences(chunk.text):
        if not _is_unreadable(span.of(chunk.text), chunk):
            yield _cut_candidate(section, chunk, span)


def _cut_candidate(section: InferenceSection, chunk: Chunk, span: Span) -> Candidate:
    """Make a candidate of a span of the chunk's text, at most `MAX_CHARACTERS` long."""
    cut = Span(span.start, min(span.end, span.start + MAX_CHARACTERS))
    start = chunk.span.start
    placed = Span(start + cut.start, start + cut.end)
    return Candidate(section, chunk, placed, cut.of(chunk.text))


def _is_unreadable(text: str, chunk: Chunk) -> bool:
    """Return whether the text is no sentence and no row of values."""
    header = table_header(chunk)
    is_header = bool(header) and _split_cells(text) == header
    return is_header or _is_structure(_without_markup(text, chunk), chunk)


def _without_markup(text: str, chunk: Chunk) -> str:
    """Replace Markdown links by their labels."""
    return strip_links(text) if chunk.media_type == registry.MARKDOWN else text


def _is_structure(text: str, chunk: Chunk) -> bool:
    """Return whether the text is a heading, a table's ruler, a label or a fragment instead of a sentence."""
    ended = _END.search(text) is not None
    fewest = MIN_WORDS if ended else MIN_WORDS_OF_LINE
    if text.startswith("#") or _RULER.fullmatch(text) or len(words(text)) < fewest:
        return True
    bare = _to_one_line(text).strip("#*- ").casefold()
    if bare in {_to_one_line(each).casefold() for each in (chunk.title, *chunk.heading_path)}:
        return True
    is_line = not ended and not text.startswith("|") and not _LIST_ITEM.match(text)
    return is_line and len(text) < MAX_LABEL_CHARACTERS and ":" not in text


def table_header(chunk: Chunk) -> list[str]:
    """Return the column names of the table in a chunk; none if it has no table."""
    rows = [line for line in chunk.embedded_text.splitlines() if line.startswith("|")]
    return _split_cells(rows[0]) if rows else []


def _format_row(row: str, header: Sequence[str]) -> str:
    cells = _split_cells(row)
    if len(header) != len(cells):
        return "; ".join(cell for cell in cells if cell)
    return "; ".join(
        f"{name}: {cell}" if name else cell
        for name, cell in zip(header, cells, strict=True)
        if cell
    )


def _split_cells(row: str) -> list[str]:
    return [
        _to_one_line(cell).replace("\\|", "|")
        for cell in regex.split(r"(?<!\\)\|", row.strip().strip("|"))
    ]


def _to_one_line(text: str) -> str:
    """Remove line breaks, control characters and characters that change the direction of text."""
    safe = text if text.isprintable() else "".join(map(_printable, text))
    return " ".join(safe.split())


def _printable(character: str) -> str:
    return character if character.isprintable() or character in _JOINERS else " "
