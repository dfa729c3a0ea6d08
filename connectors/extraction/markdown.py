"""Markdown by its headings; the text stays Markdown, so tables and code stand as they were written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.token import Token

from connectors.document import Place, Section, SectionKind, Span
from connectors.extraction.encoding import decode
from connectors.extraction.front_matter import FrontMatter, split_front_matter
from connectors.extraction.result import (
    LONGEST_HEADING,
    ExtractionError,
    ExtractionResult,
    make_section,
)
from connectors.extraction.section_builder import HeadingStack
from connectors.extraction.text import read_text

# The parser takes some hundred bytes of memory and some microseconds for each character.
_LARGEST = 2_000_000
# Only the blocks matter here; what is inside a line is read for headings alone.
_BLOCKS = MarkdownIt("commonmark").enable("table").disable("inline")
_INLINE = MarkdownIt("commonmark")


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines `[start, end)` of the text that belong to one section."""

    start: int
    end: int
    kind: SectionKind
    path: tuple[str, ...]


def read_markdown(data: bytes) -> ExtractionResult:
    """A section for each heading's own text and for each table, without the heading itself.

    A section's text is exactly its span of the decoded file. A heading with nothing below it is a
    section of its own. Front matter becomes title, dates, authors and metadata. A file of more than
    two million characters is read as plain text.

    Raises:
        ExtractionError: not text, or nothing in it.
    """
    text = decode(data)
    if len(text) > _LARGEST:
        return read_text(data)
    front, start = split_front_matter(text)
    headings = HeadingStack()
    sections = tuple(_sections(text, start, headings))
    if not sections:
        raise ExtractionError(
            "the file holds no text below its front matter" if start else "the file holds no text"
        )
    return _with_front_matter(front, headings.first, sections)


def _with_front_matter(
    front: FrontMatter, heading: str | None, sections: tuple[Section, ...]
) -> ExtractionResult:
    return ExtractionResult(
        sections=sections,
        title=front.title or heading,
        metadata=front.metadata,
        authors=front.authors,
        created_at=front.created_at,
        updated_at=front.updated_at,
    )


def _sections(text: str, start: int, headings: HeadingStack) -> Iterator[Section]:
    lines = text[start:].split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=start))
    for part in _parts(_BLOCKS.parse(text[start:]), lines, headings):
        begin = offsets[part.start]
        raw = text[begin : offsets[part.end]]
        if body := raw.strip():
            at = begin + raw.index(body)
            place = Place(heading_path=part.path, span=Span(at, at + len(body)))
            yield make_section(body, place, part.kind)


def _parts(
    tokens: Sequence[Token], lines: Sequence[str], headings: HeadingStack
) -> Iterator[_Part]:
    """Cut the lines at top-level headings and tables."""
    at = heading = 0
    for number, token in enumerate(tokens):
        if token.map is None or not _cuts(token, tokens[number + 1 : number + 2]):
            continue
        begin, end = token.map
        if token.type == "table_open":
            yield _Part(at, begin, "text", headings.path)
            yield _Part(begin, end, "table", headings.path)
            at = heading = end
            continue
        level = int(token.tag[1:])
        bare = level <= headings.level and not any(map(str.strip, lines[at:begin]))
        yield _Part(heading if bare else at, begin, "text", headings.path)
        headings.push(level, _plain(tokens[number + 1].content))
        heading, at = begin, end
    bare = not any(map(str.strip, lines[at:]))
    yield _Part(heading if bare else at, len(lines), "text", headings.path)


def _cuts(token: Token, following: Sequence[Token]) -> bool:
    if token.level or token.type not in ("heading_open", "table_open"):
        return False
    return token.type == "table_open" or len(following[0].content) <= LONGEST_HEADING


def _plain(inline: str) -> str:
    """The text of a heading without its markup."""
    children = [child for token in _INLINE.parseInline(inline) for child in token.children or ()]
    return "".join(
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in children
        if child.type != "html_inline"
    )
