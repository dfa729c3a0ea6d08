"""Read Markdown, divided by headings, with its YAML front matter.

The text stays Markdown, with tables and code unchanged.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from connectors.document import Metadata, Person, Place, Section, SectionKind, Span
from connectors.extraction.encoding import decode
from connectors.extraction.result import (
    LONGEST_HEADING,
    ExtractionError,
    ExtractionResult,
    HeadingStack,
    make_section,
    parse_people,
)
from connectors.extraction.text import read_text
from connectors.text_cleaning import parse_time, to_one_line

_FENCED = re.compile(r"\s*---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_LARGEST_FRONT_MATTER = 65_536
_CREATED = ("created", "created_at", "date", "published")
_UPDATED = ("updated", "updated_at", "last_updated", "lastmod", "modified", "last_modified")
_AUTHORS = ("author", "authors", "owner", "owners")
_KNOWN_FIELDS = {"title", *_CREATED, *_UPDATED, *_AUTHORS}

# The parser needs some hundred bytes of memory and some microseconds per character.
_LARGEST = 2_000_000
# With fewer than ten characters a line, two million have half a million headings, each a section of its own.
_MOST_LINES = 200_000
# Only blocks are needed; inline markup is parsed in headings alone.
_BLOCKS = MarkdownIt("commonmark").enable("table").disable("inline")
_INLINE = MarkdownIt("commonmark")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    title: str | None = None
    metadata: Metadata = field(default_factory=dict)
    authors: tuple[Person, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None


def split_front_matter(text: str) -> tuple[FrontMatter, int]:
    """Parse the front matter, and return it with the start of the text after it.

    What only looks like front matter (not YAML, or without keys) stays in the text.
    """
    match = _FENCED.match(text[:_LARGEST_FRONT_MATTER])
    fields = _load_fields(match[1] or "") if match else None
    if match is None or fields is None:
        return FrontMatter(), 0
    return _make_front_matter(fields), match.end()


def _load_fields(yaml_text: str) -> Mapping[str, object] | None:
    try:
        loaded = yaml.load(yaml_text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    if not isinstance(loaded, dict):
        return None
    return {
        to_one_line(key).lower(): value for key, value in loaded.items() if isinstance(key, str)
    }


def _make_front_matter(fields: Mapping[str, object]) -> FrontMatter:
    return FrontMatter(
        title=next(_iterate_texts(fields.get("title")), None),
        metadata=_make_metadata(fields),
        authors=parse_people(name for key in _AUTHORS for name in _iterate_texts(fields.get(key))),
        created_at=_find_time(fields, _CREATED),
        updated_at=_find_time(fields, _UPDATED),
    )


def _make_metadata(fields: Mapping[str, object]) -> Metadata:
    found = {
        key: tuple(_iterate_texts(value))
        for key, value in fields.items()
        if key not in _KNOWN_FIELDS
    }
    return {key: texts[0] if len(texts) == 1 else texts for key, texts in found.items() if texts}


def _iterate_texts(value: object) -> Iterator[str]:
    """Yield a text or the texts of a list; other values are ignored."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and (text := to_one_line(item)):
            yield text


def _find_time(fields: Mapping[str, object], names: tuple[str, ...]) -> datetime | None:
    texts = (text for name in names for text in _iterate_texts(fields.get(name)))
    return next(filter(None, map(parse_time, texts)), None)


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines `[start, end)` of one section."""

    start: int
    end: int
    kind: SectionKind
    path: tuple[str, ...]


def read_markdown(data: bytes) -> ExtractionResult:
    """Make a section of each heading's own text and of each table, without the heading itself.

    A section's text is exactly its span of the decoded file. A heading without text below it is a
    section of its own. Front matter provides title, dates, authors and metadata. A file of more than
    two million characters or 200,000 lines is read as plain text.

    Raises:
        ExtractionError: the file is not text, or holds nothing.
    """
    text = decode(data)
    if len(text) > _LARGEST or text.count("\n") > _MOST_LINES:
        return read_text(data)
    front, start = split_front_matter(text)
    headings = HeadingStack()
    sections = tuple(_iterate_sections(text, start, headings))
    if not sections:
        raise ExtractionError(
            "the file contains no text below its front matter"
            if start
            else "the file contains no text"
        )
    return _make_result(front, headings.first, sections)


def _make_result(
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


def _iterate_sections(text: str, start: int, headings: HeadingStack) -> Iterator[Section]:
    lines = text[start:].split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=start))
    for part in _split_lines(_BLOCKS.parse(text[start:]), lines, headings):
        begin = offsets[part.start]
        raw = text[begin : offsets[part.end]]
        if body := raw.strip():
            at = begin + raw.index(body)
            place = Place(heading_path=part.path, span=Span(at, at + len(body)))
            yield make_section(body, place, part.kind)


def _split_lines(
    tokens: Sequence[Token], lines: Sequence[str], headings: HeadingStack
) -> Iterator[_Part]:
    """Split the lines at top-level headings and tables."""
    at = heading = 0
    for number, token in enumerate(tokens):
        if token.map is None or not _starts_part(token, tokens[number + 1 : number + 2]):
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
        headings.push(level, _strip_markup(tokens[number + 1].content))
        heading, at = begin, end
    bare = not any(map(str.strip, lines[at:]))
    yield _Part(heading if bare else at, len(lines), "text", headings.path)


def _starts_part(token: Token, following: Sequence[Token]) -> bool:
    if token.level or token.type not in ("heading_open", "table_open"):
        return False
    return token.type == "table_open" or len(following[0].content) <= LONGEST_HEADING


def _strip_markup(inline: str) -> str:
    """Return the text of a heading without its markup."""
    children = [child for token in _INLINE.parseInline(inline) for child in token.children or ()]
    return "".join(
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in children
        if child.type != "html_inline"
    )
