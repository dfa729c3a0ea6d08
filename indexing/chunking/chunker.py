"""Document to Chunks: pieces small enough to be embedded whole, cut where a reader would.

Ours rather than a library's: those that keep spans (semchunk) count the tokens of every piece they
try, know neither 。 nor tables, and cannot be told of the lines that stand around a piece. Here
each section is tokenised once to plan the cuts and once to prove them; a short one once.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from connectors.document import Document, Section, Span
from indexing.chunking.chunk import Chunk
from indexing.chunking.context_header import Frame, Framer
from indexing.chunking.sentences import sentences
from indexing.chunking.splitter import TokenisedText, halves, trimmed
from indexing.embedding.embedder import Embedder

CHUNKER_VERSION = 1
"""Part of every content hash: a new number cuts and embeds every document anew."""

MOST_TOKENS = 512
_FEWEST_TOKENS = 32
_HEADER_SHARE = 4
_MARGIN = 2
"""Tokens kept free: a piece may tokenise a little longer by itself than within its text."""
_SHORT = 5
"""Characters a token: a section of no more is likely to be one chunk, which is then all that is asked."""

_LINE = re.compile(r"[^\n\r]+")
_RULE = re.compile(r"\|?[\s:|+-]*-[\s:|+-]*")

_as_json = json.JSONEncoder(sort_keys=True).encode


def chunks_of(
    document: Document, embedder: Embedder, most_tokens: int = MOST_TOKENS
) -> list[Chunk]:
    """The chunks of a document in reading order; a document without text has none.

    The `embedded_text` of each has at most `most_tokens` tokens, or the embedder's own limit, with
    special tokens, title, heading path and metadata. The spans of a section are in order, do not
    overlap, and hold all text that is not blank. Tables are cut between rows, and the header row
    stands again above each later piece, in `embedded_text` only.

    Raises:
        ValueError: the limit is below 32 tokens.
    """
    limit = min(most_tokens, embedder.max_tokens)
    if limit < _FEWEST_TOKENS:
        raise ValueError(f"{limit} tokens a chunk leave no room for text; give at least 32")
    framer = Framer(document, embedder, limit)
    planned = [
        passage
        for number in range(len(document.sections))
        for passage in _passages(document, number, embedder, framer, limit)
    ]
    return [
        _chunk(document, position, passage)
        for position, passage in enumerate(_proven(planned, embedder, limit))
    ]


@dataclass(frozen=True, slots=True)
class _Passage:
    number: int
    section: Section
    span: Span
    frame: Frame

    @property
    def text(self) -> str:
        return self.span.of(self.section.text)

    @property
    def embedded_text(self) -> str:
        return self.frame.around(self.text)


def _passages(
    document: Document, number: int, embedder: Embedder, framer: Framer, limit: int
) -> Iterator[_Passage]:
    """Pieces of a section that should fit, judged by the tokens of the section as a whole."""
    section = document.sections[number]
    span = trimmed(section.text, Span(0, len(section.text)))
    if span is None:
        return
    first = framer.frame(_headings(section))
    header = _header(section)
    whole = _Passage(number, section, span, first)
    if not header and _is_one(whole, framer, limit):
        yield whole
        return
    fitting = header if framer.tokens(header) * _HEADER_SHARE <= limit else ""
    later = first.with_header(fitting)
    room = max(1, limit - framer.tokens(later.around("")) - _MARGIN)
    text = TokenisedText(section.text, embedder.token_ends(section.text))
    for i, span in enumerate(text.packed(_units(section), room)):
        yield _Passage(number, section, span, later if i else first)


def _is_one(whole: _Passage, framer: Framer, limit: int) -> bool:
    """Whether a short section is a chunk as it is; not known of a longer one."""
    text = whole.embedded_text
    return len(text) <= limit * _SHORT and framer.tokens(text) <= limit - _MARGIN


def _proven(planned: Sequence[_Passage], embedder: Embedder, limit: int) -> Iterator[_Passage]:
    """The passages that fit as they are, the others halved until they do."""
    counts = embedder.count_tokens([passage.embedded_text for passage in planned])
    for passage, count in zip(planned, counts, strict=True):
        spans = [passage.span] if count <= limit else halves(passage.section.text, passage.span)
        if spans == [passage.span]:
            yield passage
        else:
            yield from _proven([replace(passage, span=span) for span in spans], embedder, limit)


def _units(section: Section) -> list[Span]:
    return list(_rows(section.text)) if section.kind == "table" else sentences(section.text)


def _rows(table: str) -> Iterator[Span]:
    for match in _LINE.finditer(table):
        if row := trimmed(table, Span(*match.span())):
            yield row


def _header(section: Section) -> str:
    """The first row of a table that has a rule below it."""
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


def _chunk(document: Document, position: int, passage: _Passage) -> Chunk:
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
        tags=frozenset(_tags(document)),
        owners=document.owners,
        created_at=document.created_at,
        updated_at=document.updated_at,
    )


def _tags(document: Document) -> Iterator[str]:
    for key, values in document.metadata.items():
        for value in (values,) if isinstance(values, str) else values:
            yield f"{key}={value}"


def content_hash(document: Document) -> str:
    """A digest of everything that is indexed but access, which is amended without new vectors."""
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
