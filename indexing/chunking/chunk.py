"""Pieces of a document: chunks, which are stored and found, and what running text of any script is split into.

Sentences are found by rules instead of a model: they keep exact spans, take linear time, and need not know the
language. Terminators are the common ones of Unicode's Sentence_Terminal property (UAX 29); what UAX 29 leaves
open (abbreviations, initials, decimals, wrapped lines) is decided by the tables below. A text that is too long
is split between units (sentences, rows), else between words, else anywhere.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from connectors.access import Access
from connectors.document import Person, Span
from indexing.text.markdown_links import measure_unbreakable, strip_link_targets

CHARACTERS_A_TOKEN = 16
"""More than the tokens of any prose have on average: bounds what is looked at for a few tokens."""

_LINE = re.compile(r"[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_BLANK_LINE = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_LIST_ITEM = re.compile(r"(?:[-*+•‣◦·–—]|\(?(?:\d{1,3}|[A-Za-z])[.)]|[①-⑳])\s")
_LABEL_ENDS = re.compile(r"[^\[\]\n]*+\]\(")
_OWN_LINE = re.compile(r"[|#>]|```|~~~")

_CLOSERS = "\"'”’»›)\\]}」』）】〉》〕］｝｣"
# No look-ahead: code checks what follows, so that a run of terminators is read once.
_TERMINATOR = re.compile(
    rf"(?:(?P<plain>[.!?…‽؟۔।॥։።။។]+)|(?P<wide>[。！？｡．]+))[.!?…。！？]*+(?P<closers>[{_CLOSERS}]*+)"
)
_WORD_BEFORE = re.compile(r"[^\W_]+(?:\.[^\W_]+)*\Z")
_WORD_AFTER = re.compile(r"[^\W_]*")
_LONGEST_ABBREVIATION = 12

# After a closing quotation mark these continue the sentence: 「はい。」と言った。
_CONTINUES = frozenset("とっなのがをはにもへ、，")
_MAX_WIDTH = 160
_USUAL_WIDTH = 80
_WRAPPED = range(60, _MAX_WIDTH + 1)
_WRAPPED_BEFORE_LOWER_CASE = range(30, _MAX_WIDTH + 1)
_BREAK = re.compile(r"\s|[，、；：](?=\S)")
_TINY_SHARE = 4
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER_LAST = _words(
    "dr mr mrs ms mx prof rev hon sen rep gov gen col capt lt sgt st messrs mme mlle"
    " e.g i.e eg ie vs cf viz resp incl approx a.k.a"
    " z.b d.h u.a i.d.r bzw ggf inkl evtl vgl sog p.ex par.ex p.ej т.е т.д напр"
)
_BEFORE_A_NUMBER = _words(
    "no nos nr fig figs eq eqs sec ch chap vol vols p pp art abs par para tab ver rev ca min max"
    " ext tel jan feb mar apr jun jul aug sep sept oct nov dec рис стр гл"
)
_GERMAN_MONTHS = _words(
    "januar februar märz april mai juni juli august september oktober november dezember"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    document_id: str
    position: int
    """Within the document, counted from 0, without gaps."""
    text: str
    """The `span` of the text of section number `section`."""
    embedded_text: str
    """The text for the embedder and the keyword leg: title, heading path, text, metadata."""
    section: int
    span: Span
    title: str
    link: str
    source: str
    media_type: str
    access: Access
    page: int | None = None
    heading_path: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    """Metadata as `key=value`."""
    sets: frozenset[str] = frozenset()
    projects: frozenset[str] = frozenset()
    """Ids of the projects whose files it belongs to."""
    personas: frozenset[str] = frozenset()
    """Ids of the assistants whose files it belongs to."""
    owners: tuple[Person, ...] = ()
    boost: float = 1.0
    """Multiplies the hybrid score; 1 is neutral."""
    hidden: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.document_id, self.position


@dataclass(frozen=True, slots=True)
class ChunkRange:
    """Chunks of one document by position: `[start, end)`."""

    document_id: str
    start: int
    end: int


def split_sentences(text: str) -> list[Span]:
    """Return the sentences of `text` in order; they do not overlap and cover all that is not blank.

    The end of a paragraph, list item, heading or table row ends a sentence, and so does the end of a line
    unless the line looks wrapped. Time is linear in the length of the text.
    """
    return list(iterate_sentences(text))


def iterate_sentences(text: str) -> Iterator[Span]:
    """Yield what `split_sentences` returns: a long text has millions of sentences."""
    for block in _blocks(text):
        for piece in _split_block(text, block):
            if (sentence := piece.trim(text)) is not None:
                yield sentence


def _blocks(text: str) -> Iterator[Span]:
    """Yield the lines, joining wrapped lines with the next."""
    block: Span | None = None
    last: Span | None = None
    for match in _LINE.finditer(text):
        line = Span(*match.span()).trim(text)
        if line is None:
            continue
        if block is not None and last is not None and _wraps(text, last, line):
            block = Span(block.start, line.end)
        else:
            if block is not None:
                yield block
            block = line
        last = line
    if block is not None:
        yield block


def _wraps(text: str, line: Span, following: Span) -> bool:
    """Return whether the break between two lines comes from wrapping."""
    if len(_BLANK_LINE.findall(text, line.end, following.start)) != 1:
        return False
    if any(_OWN_LINE.match(text, each.start) for each in (line, following)):
        return False
    if _LIST_ITEM.match(text, following.start) or text[line.end - 1] in ".!?:;。！？：；":
        return False
    if _LABEL_ENDS.match(text, following.start, following.end):
        return True
    width = _width(line.of(text))
    link = measure_unbreakable(text, following.start, following.end)
    if link and _USUAL_WIDTH - link <= width <= _MAX_WIDTH:
        return True
    next_is_lower = text[following.start].islower()
    return width in (_WRAPPED_BEFORE_LOWER_CASE if next_is_lower else _WRAPPED)


def _width(line: str) -> int:
    """Return the width in columns; the maximum for a line that is longer only by the target of a link."""
    if len(line) > _MAX_WIDTH:
        return _MAX_WIDTH if len(strip_link_targets(line)) <= _MAX_WIDTH else len(line)
    if line.isascii():
        return len(line)
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line)


def _split_block(text: str, block: Span) -> Iterator[Span]:
    """Yield the sentences of a block, with the blanks around them."""
    start = block.start
    if text[start] != "|":
        for match in _TERMINATOR.finditer(text, block.start, block.end):
            if _ends(text, match, block):
                yield Span(start, match.end())
                start = match.end()
    yield Span(start, block.end)


def _ends(text: str, match: re.Match[str], block: Span) -> bool:
    after = match.end()
    if after == block.end:
        return True
    if match["wide"]:
        if match.group() == "．" and text[after].isalnum():
            return False
        return not (match["closers"] and text[after] in _CONTINUES)
    if not text[after].isspace():
        return False
    following = _first_letter(text, after, block.end)
    if following == block.end:
        return True
    if text[following].islower() or text[following] in ",;:":
        return False
    return match.group() != "." or not _is_abbreviation(text, match.start(), following, block.start)


def _first_letter(text: str, start: int, end: int) -> int:
    """Skip blanks and opening brackets before the next sentence."""
    while start < end and (text[start].isspace() or text[start] in "\"'“‘«‹([{「『（【"):
        start += 1
    return start


def _is_abbreviation(text: str, dot: int, following: int, block_start: int) -> bool:
    """Return whether the full stop at `dot` belongs to the word before it."""
    start = max(block_start, dot - _LONGEST_ABBREVIATION)
    before = _WORD_BEFORE.search(text, start, dot)
    if before is None:
        return False
    word = before.group()
    if word.isdigit():
        return _is_ordinal(text, before, following, block_start)
    initials = word.split(".")
    if all(len(letter) == 1 and letter.isupper() for letter in initials):
        return True
    folded = word.lower()
    return folded in _NEVER_LAST or (folded in _BEFORE_A_NUMBER and text[following].isdigit())


def _is_ordinal(text: str, number: re.Match[str], following: int, block_start: int) -> bool:
    """Return whether "1." opens a list item, or "3." a German date."""
    if number.start() == block_start and len(number.group()) <= 3:
        return True
    word = _WORD_AFTER.match(text, following)
    return len(number.group()) <= 2 and word is not None and word.group().lower() in _GERMAN_MONTHS


@dataclass(frozen=True, slots=True)
class TokenizedText:
    text: str
    ends: Sequence[int]
    """The end of each of its tokens in code points, ascending."""

    def count_tokens(self, span: Span) -> int:
        """Count the tokens that end within the span."""
        return bisect_right(self.ends, span.end) - bisect_right(self.ends, span.start)

    def fits(self, span: Span, room: int) -> bool:
        """Return whether it has at most `room` tokens and not more characters than so many tokens usually have."""
        return (
            span.end - span.start <= room * CHARACTERS_A_TOKEN and self.count_tokens(span) <= room
        )

    def pack(self, units: Iterable[Span], room: int) -> list[Span]:
        """Join units to runs as long as possible; the last two are evened out if the last one would be tiny."""
        packed: list[Span] = []
        # The pieces of the last two runs alone: a text may consist of millions.
        groups: list[list[Span]] = []
        for piece in (piece for unit in units for piece in self._pieces(unit, room)):
            if groups and self.fits(Span(groups[-1][0].start, piece.end), room):
                groups[-1].append(piece)
                continue
            if len(groups) == 2:
                packed.append(_enclosing(groups.pop(0)))
            groups.append([piece])
        return packed + [_enclosing(group) for group in self._even_out(groups, room)]

    def _even_out(self, groups: list[list[Span]], room: int) -> list[list[Span]]:
        if len(groups) < 2 or self.count_tokens(_enclosing(groups[-1])) * _TINY_SHARE >= room:
            return groups
        both = [*groups[-2], *groups[-1]]
        half = self.count_tokens(_enclosing(both)) // 2
        last = len(groups[-2])
        while last > 1 and self.count_tokens(_enclosing(both[last - 1 :])) <= half:
            last -= 1
        return [*groups[:-2], both[:last], both[last:]]

    def _pieces(self, unit: Span, room: int) -> Iterator[Span]:
        """Yield the unit, or pieces of it that fit."""
        rest: Span | None = unit
        while rest is not None and not self.fits(rest, room):
            cut = self._cut_within(rest, room)
            piece = Span(rest.start, cut).trim(self.text)
            if piece is not None:
                yield piece
            rest = Span(cut, rest.end).trim(self.text)
        if rest is not None:
            yield rest

    def _cut_within(self, span: Span, room: int) -> int:
        last = bisect_right(self.ends, span.start) + room - 1
        most = span.start + room * CHARACTERS_A_TOKEN
        end = min(self.ends[last], most) if last < len(self.ends) else most
        return find_break(self.text, Span(span.start + (end - span.start) // 2, end))


def find_break(text: str, window: Span) -> int:
    """Return the last place in `window` to split at: between words, after a clause, else near its end."""
    if window.end < len(text) and text[window.end].isspace():
        return window.end
    breaks = [match.end() for match in _BREAK.finditer(text, window.start + 1, window.end)]
    if breaks:
        return breaks[-1]
    cut = window.end
    while cut > window.start + 1 and _joins_previous(text, cut):
        cut -= 1
    return cut


def _joins_previous(text: str, position: int) -> bool:
    """Return whether the code point at `position` forms one character with the previous one."""
    if position >= len(text):
        return False
    return (
        unicodedata.combining(text[position]) > 0
        or text[position] in _JOINERS
        or text[position - 1] in _JOINERS
    )


def split_in_half(text: str, span: Span) -> list[Span]:
    """Split a span in two near its middle; a single character stays whole."""
    length = span.end - span.start
    if length < 2:
        return [span]
    middle = span.start + (length + 1) // 2
    cut = find_break(text, Span(middle - length // 4, middle))
    pieces = (Span(span.start, cut).trim(text), Span(cut, span.end).trim(text))
    return [piece for piece in pieces if piece is not None]


def _enclosing(units: Sequence[Span]) -> Span:
    return Span(units[0].start, units[-1].end)
