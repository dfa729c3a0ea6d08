"""Split a document into chunks small enough to be embedded whole, at sentences and table rows.

A chunk is embedded with its context: title, heading path and metadata.

Not done by a library, because those that keep spans (semchunk) count the tokens of every piece they try,
know neither 。 nor tables, and cannot account for the lines around a piece. Here each section is tokenized
once to plan the cuts and once to verify them; a short one once.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from connectors.batched import batched
from connectors.document import Document, Metadata, Section, Span
from indexing.chunking.chunk import (
    CHARACTERS_A_TOKEN,
    Chunk,
    TokenizedText,
    iterate_sentences,
    split_in_half,
)
from indexing.embedding.embedder import Embedder

_CONTEXT_SHARE = 4
_HEADINGS = 8
_OPAQUE_KEY = re.compile(
    r"_.*|(?:.*[\W_])?(?:id|uuid|guid|hash|etag|checksum|md5|sha\d*|cursor|revision|size|bytes)|(?-i:\w+Id)",
    re.IGNORECASE,
)
_OPAQUE_VALUE = re.compile(
    r"\w+://.*|[0-9a-f]{8}[0-9a-f-]{8,}|[\W\d_]*|.{121,}", re.IGNORECASE | re.DOTALL
)

CHUNKER_VERSION = 1
"""Part of every content hash: a new number makes every document be chunked and embedded again."""
MAX_TOKENS = 512
_MIN_TOKENS = 32
_HEADER_SHARE = 4
_MARGIN = 2
"""Tokens kept free: a piece may have a few more tokens by itself than within its text."""
_PASSAGES_AT_ONCE = 256
_LONGEST_HEADER = 100_000
"""In characters. Of a longer header row the tokens are not even counted: it is not repeated."""
_SHORT = 5
"""Characters per token up to which a section probably fits in one chunk, which is then tried first."""
_LINE = re.compile(r"[^\n\r]+")
_RULE = re.compile(r"[\s:|+]*+-[\s:|+-]*+")
_as_json = json.JSONEncoder(sort_keys=True).encode


@dataclass(frozen=True, slots=True)
class ChunkContext:
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def wrap(self, text: str) -> str:
        return "\n".join((*self.before, text, *self.after))

    def with_header(self, header: str) -> "ChunkContext":
        """Add a table's header row, if there is one, right above the text."""
        return ChunkContext((*self.before, header), self.after) if header else self


class ContextBuilder:
    """Builds the contexts of one document's sections, each at most a quarter of the limit.

    What does not fit is left out: the end of the title, the outer headings, metadata from the first line
    that is too long.
    """

    def __init__(self, document: Document, embedder: Embedder, limit: int) -> None:
        self._embedder = embedder
        self._limit = limit
        self._title = " ".join(document.title.split())
        self._metadata = tuple(_readable_lines(document.metadata))
        self._built: dict[tuple[str, ...], ChunkContext] = {}
        self._costs: dict[str, int] = {}

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text, special ones included."""
        return self._embedder.count_tokens([text])[0]

    def build(self, headings: tuple[str, ...]) -> ChunkContext:
        if headings not in self._built:
            self._built[headings] = self._build(headings)
        return self._built[headings]

    def _build(self, headings: tuple[str, ...]) -> ChunkContext:
        room = self._limit // _CONTEXT_SHARE
        title, cost = self._head(self._title, room)
        path, more = self._path(headings, room - cost)
        before = tuple(line for line in (title, path) if line)
        return ChunkContext(before, tuple(self._lines(room - cost - more)))

    def _path(self, headings: Sequence[str], room: int) -> tuple[str, int]:
        """Return the innermost headings that fit, without repetitions of the title, and their cost."""
        path_lines = [" ".join(heading.split()) for heading in headings[-_HEADINGS:]]
        distinct = [each for each in path_lines if each and each != self._title]
        path, cost = self._head(distinct[-1], room) if distinct else ("", 0)
        if not path or cost > room:
            return "", 0
        for heading in reversed(distinct[:-1]):
            more = self._cost(heading)
            if cost + more > room:
                break
            path, cost = f"{heading} > {path}", cost + more
        return path, cost

    def _head(self, line: str, room: int) -> tuple[str, int]:
        """Return the beginning of a line that fits, and its cost."""
        most = max(0, room - 1)
        if len(line) > most * CHARACTERS_A_TOKEN or self._cost(line) > room:
            line = head(line, most, self._embedder)
        return line, self._cost(line) if line else 0

    def _lines(self, room: int) -> Iterator[str]:
        for line in self._metadata:
            room -= self._cost(line)
            if room < 0:
                break
            yield line

    def _cost(self, line: str) -> int:
        """Return the tokens that a line adds, with one for its end, or for the > of a path."""
        cost = self._costs.get(line)
        if cost is None:
            cost = self._costs[line] = len(self._embedder.token_ends(line)) + 1
        return cost


def _readable_lines(metadata: Metadata) -> Iterator[str]:
    """Yield `key: value` for readable metadata: no ids, digests, addresses, bare numbers, long texts."""
    for key in sorted(metadata):
        values = metadata[key]
        text = values if isinstance(values, str) else ", ".join(values)
        line = " ".join(text.split())
        if line and not _OPAQUE_KEY.fullmatch(key) and not _OPAQUE_VALUE.fullmatch(line):
            yield f"{key}: {line}"


def chunk_document(
    document: Document, embedder: Embedder, max_tokens: int = MAX_TOKENS
) -> list[Chunk]:
    """Return the chunks of a document in reading order; a document without text has none.

    The `embedded_text` of each has at most `max_tokens` tokens, or the embedder's own limit, with special
    tokens, title, heading path and metadata. The spans of a section are in order, do not overlap, and
    contain all text that is not blank. Tables are split between rows, and the header row is repeated above
    each later piece, in `embedded_text` only.

    Raises:
        ValueError: the limit is below 32 tokens.
    """
    limit = min(max_tokens, embedder.max_tokens)
    if limit < _MIN_TOKENS:
        raise ValueError(f"{limit} tokens per chunk leave no space for text; set at least 32")
    contexts = ContextBuilder(document, embedder, limit)
    planned = (
        passage
        for number in range(len(document.sections))
        for passage in _passages(document, number, embedder, contexts, limit)
    )
    tags = frozenset(_tags(document))
    return [
        _chunk(document, position, passage, tags)
        for position, passage in enumerate(_verify(planned, embedder, limit))
    ]


@dataclass(frozen=True, slots=True)
class _Passage:
    number: int
    section: Section
    span: Span
    context: ChunkContext

    @property
    def text(self) -> str:
        return self.span.of(self.section.text)

    @property
    def embedded_text(self) -> str:
        return self.context.wrap(self.text)


def _passages(
    document: Document, number: int, embedder: Embedder, contexts: ContextBuilder, limit: int
) -> Iterator[_Passage]:
    """Plan pieces of a section that should fit, by the tokens of the section as a whole."""
    section = document.sections[number]
    span = Span(0, len(section.text)).trim(section.text)
    if span is None:
        return
    first = contexts.build(_headings(section))
    header = _header(section)
    whole = _Passage(number, section, span, first)
    if not header and _fits_whole(whole, contexts, limit):
        yield whole
        return
    later = first.with_header(_fitting(header, contexts, limit))
    room = max(1, limit - contexts.count_tokens(later.wrap("")) - _MARGIN)
    text = TokenizedText(section.text, embedder.token_ends(section.text))
    for i, span in enumerate(text.pack(_units(section), room)):
        yield _Passage(number, section, span, later if i else first)


def _fitting(header: str, contexts: ContextBuilder, limit: int) -> str:
    """Return the header row of a table if it leaves most of a chunk to the rows; else nothing."""
    is_short = len(header) <= _LONGEST_HEADER
    return header if is_short and contexts.count_tokens(header) * _HEADER_SHARE <= limit else ""


def _fits_whole(whole: _Passage, contexts: ContextBuilder, limit: int) -> bool:
    """Return whether a short section is one chunk; longer ones are not tried."""
    text = whole.embedded_text
    return len(text) <= limit * _SHORT and contexts.count_tokens(text) <= limit - _MARGIN


def _verify(planned: Iterable[_Passage], embedder: Embedder, limit: int) -> Iterator[_Passage]:
    """Yield the passages that fit, and split the others in half until they do."""
    for passage, count in _count_each(planned, embedder):
        spans = (
            [passage.span] if count <= limit else split_in_half(passage.section.text, passage.span)
        )
        if spans == [passage.span]:
            yield passage
        else:
            yield from _verify([replace(passage, span=span) for span in spans], embedder, limit)


def _count_each(planned: Iterable[_Passage], embedder: Embedder) -> Iterator[tuple[_Passage, int]]:
    """Yield each passage with its tokens, and hold the texts of some at a time."""
    for some in batched(planned, _PASSAGES_AT_ONCE):
        counts = embedder.count_tokens([passage.embedded_text for passage in some])
        yield from zip(some, counts, strict=True)


def _units(section: Section) -> Iterator[Span]:
    return _rows(section.text) if section.kind == "table" else iterate_sentences(section.text)


def _rows(table: str) -> Iterator[Span]:
    for match in _LINE.finditer(table):
        if row := Span(*match.span()).trim(table):
            yield row


def _header(section: Section) -> str:
    """Return the first row of a table if there is a rule below it."""
    if section.kind != "table":
        return ""
    match [row.of(section.text) for row in islice(_rows(section.text), 2)]:
        case [header, rule] if _RULE.fullmatch(rule):
            return header
        case _:
            return ""


def _headings(section: Section) -> tuple[str, ...]:
    sheet, path = section.place.sheet, section.place.heading_path
    return path if sheet is None or sheet in path else (sheet, *path)


def _chunk(document: Document, position: int, passage: _Passage, tags: frozenset[str]) -> Chunk:
    section = passage.section
    return Chunk(
        document_id=document.id,
        position=position,
        text=passage.text,
        embedded_text=passage.embedded_text,
        section=passage.number,
        span=passage.span,
        title=document.title,
        link=section.link or document.link,
        source=document.source,
        media_type=document.media_type,
        access=document.access,
        page=section.place.page,
        heading_path=_headings(section),
        tags=tags,
        owners=document.owners,
        created_at=document.created_at,
        updated_at=document.updated_at,
    )


def _tags(document: Document) -> Iterator[str]:
    for key, values in document.metadata.items():
        for value in (values,) if isinstance(values, str) else values:
            yield f"{key}={value}"


def compute_content_hash(document: Document) -> str:
    """Return a digest of everything that is indexed but access, which changes without new vectors."""
    digest = hashlib.blake2b(digest_size=20)
    for part in _indexed_parts(document):
        digest.update(_as_json(part).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _indexed_parts(document: Document) -> Iterator[object]:
    yield [CHUNKER_VERSION, document.source, document.title, document.link, document.media_type]
    yield [_utc(document.created_at), _utc(document.updated_at), document.parents]
    yield [[owner.name, owner.email] for owner in document.owners]
    yield {**document.metadata}
    for section in document.sections:
        place = section.place
        yield [section.kind, section.link, section.text]
        yield [place.page, place.heading_path, place.sheet, place.rows]
        yield None if place.span is None else [place.span.start, place.span.end]


def _utc(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()


def head(text: str, tokens: int, embedder: Embedder) -> str:
    """Return the beginning of `text` that has at most `tokens` tokens, special tokens not counted."""
    start = text[: tokens * CHARACTERS_A_TOKEN]
    ends = embedder.token_ends(start)
    return start if len(ends) <= tokens else start[: ends[tokens - 1] if tokens else 0]
