"""Find citation markers in streamed Markdown, and nothing that only looks like one.

A marker is `[1]`, `[1, 2]`, `[1;2]`, `[1-3]`, `[[1]]`, `[[1, 2]]`, `【1】`, `【1†source】` or `［1］`.
`[[1]](address)` is one too, whatever the address, and so is `[2](address)` right after another
marker. Code, links, images, reference links, definitions of labels that are no numbers, autolinks
and escaped brackets are text, whatever they contain: as in CommonMark 0.31, except that a link is on
one line, and that indented lines are code only outside of lists.

What begins at an offset is decided by at most `MAX_HELD` characters from there, and only once they
have arrived or can no longer change it. So the result is the same however the text was split, and
time is linear. What is text in any case is never held back: only what may still become a marker,
and what follows it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import groupby
from typing import TypeAlias

import regex

MAX_HELD = 1_000
LONGEST_CODE = LONGEST_LABEL = 300
"""Characters after which an open backtick or bracket is taken for a stray one."""
LONGEST_RANGE = 20

_GAP = r"[ \t\u00a0\u3000]*+"
_NUMBER = r"[1-9１-９][0-9０-９]{0,5}+"
_RANGE = rf"{_NUMBER}(?:{_GAP}[-‐‑–—~〜～]{_GAP}{_NUMBER})?+"
_LIST = rf"{_GAP}{_RANGE}(?:{_GAP}[,;，；、]{_GAP}{_RANGE})*+{_GAP}"
_MARKER = regex.compile(rf"\[(?:(?P<list>{_LIST})|\[(?P<list>{_LIST})\])\]")
_WIDE_MARKER = regex.compile(rf"【(?P<list>{_LIST})(?:†[^】\n]{{0,80}}+)?+】|［(?P<list>{_LIST})］")
_NUMBER_LIST = regex.compile(_LIST)
_NUMBERS = regex.compile(rf"({_NUMBER})(?:{_GAP}[-‐‑–—~〜～]{_GAP}({_NUMBER}))?+")

_PLAIN = r"[^\[\]\\\n]|\\."
_NO_FOOTNOTE = r"[^\[\]\\\n^]|\\."
_ONE_DEEP = rf"\[(?:{_PLAIN})*+\]"
_TWO_DEEP = rf"\[(?:{_PLAIN}|{_ONE_DEEP})*+\]"
_LABEL = rf"\[(?:{_PLAIN}|{_ONE_DEEP}|{_TWO_DEEP})*+\]"
_URL = r"(?:[^\s()<\\]|\\.|\((?:[^\s()\\]|\\.)*+\))*+"
_TITLE = r"""(?:"[^"\n]*+"|'[^'\n]*+'|\([^()\n]*+\))"""
_LINK_LABEL = regex.compile(_LABEL)
_ADDRESS = regex.compile(rf"\([ \t]*+(?:<[^<>\n]*+>|{_URL})(?:[ \t]++{_TITLE})?+[ \t]*+\)")
_REFERENCE = regex.compile(
    rf"\[(?:{_NO_FOOTNOTE})(?:{_PLAIN})*+\]\[(?:(?:{_NO_FOOTNOTE})(?:{_PLAIN})*+)?+\]"
)
# A number is never a label: a definition of it would lead the links of citations elsewhere.
_DEFINITION = regex.compile(rf" {{0,3}}\[(?!{_LIST}\])(?:{_NO_FOOTNOTE})(?:{_PLAIN})*+\]:")
_AUTOLINK = regex.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}+:[^\s<>]*+>")
_ESCAPE = regex.compile(r"\\[!-/:-@\[-`{-~]")
# `re` is the faster one, where neither partial matches nor nested sets are needed.
_BACKTICKS = re.compile(r"`++")
_PARAGRAPH_END = re.compile(r"\n[ \t\r]*+(?:[\n>#|]|`{3}|~{3}|(?:[-*+]|\d{1,9}[.)])[ \t])")
_SPECIAL = re.compile(r"[\[【［`<\\\n]")
_OPENING = re.compile(rf"[\[【［](?=\[?{_GAP}(?:[1-9１-９]|\Z))")
_PLAIN_LINE = re.compile(r"[^\s>*+`~\[0-9-]")
_PLAIN_MARKER = re.compile(r"\[([1-9][0-9]{0,5})\](?=[^(])")
_PLAIN_MARKER_BEGINNING = re.compile(r"\[(?:[1-9][0-9]{0,5}\]?)?\Z")

_FENCE = regex.compile(
    r"[ \t>]*+(?:(?:[-*+]|\d{1,9}+[.)])[ \t]++)*+"
    r"(?:(?P<run>`{3,}+)[^`\n]*+|(?P<run>~{3,}+)[^\n]*+)\n"
)
_BLANK = regex.compile(r"[ \t\r]*+\n")
_LIST_ITEM = regex.compile(r"[ \t>]*+(?:[-*+]|\d{1,9}+[.)])[ \t]")
_INDENTED = regex.compile(r"(?: {0,3}\t| {4})[ \t]*+\S")


@dataclass(frozen=True, slots=True)
class Marker:
    text: str
    """As it was written, brackets included."""
    numbers: tuple[int, ...]
    """In the order of the text, each once; ranges are expanded."""

    def renumbered(self, numbers: Sequence[int]) -> str:
        """Return it as it was written, with other numbers."""
        return _NUMBER_LIST.sub(", ".join(map(str, numbers)), self.text, count=1)


Piece: TypeAlias = str | Marker


def split_markers(text: str) -> list[Piece]:
    """Split a whole text at its markers; no two texts follow each other."""
    scanner = MarkerScanner()
    pieces = [*scanner.feed(text), *scanner.end()]
    joined: list[Piece] = []
    for kind, group in groupby(pieces, type):
        run = list(group)
        joined += ["".join(map(str, run))] if kind is str else run
    return joined


class _UndecidedError(Exception):
    """What begins here depends on text that has not arrived yet."""


class _State(Enum):
    LINE_START = auto()
    INLINE = auto()
    VERBATIM_LINE = auto()


class MarkerScanner:
    """Splits text that arrives in any pieces into text and markers."""

    def __init__(self) -> None:
        self._text = ""
        """What is undecided, and what has arrived since."""
        self._at = 0
        self._told = 0
        """Up to here the text was returned; beyond `_at`, where it is text whatever is decided."""
        self._marker_end = -1
        self._ended = False
        self._place = _State.LINE_START
        self._closing: regex.Pattern[str] | None = None
        """Matches the line that closes the current fenced code; None outside."""
        self._in_list = False
        self._after_blank = True

    def feed(self, text: str) -> list[Piece]:
        if self._told == len(self._text) < MAX_HELD and not _SPECIAL.search(text):
            return self._pass_on(text)
        self._text += text
        return self._decided()

    def end(self) -> list[Piece]:
        """Return what was held back. Nothing may be fed afterwards."""
        self._ended = True
        return self._decided()

    def _pass_on(self, text: str) -> list[Piece]:
        """Return text in which no marker begins; what it is part of can be decided later."""
        if not text:
            return []
        if self._text or self._place is _State.LINE_START:
            self._text += text
            self._told = len(self._text)
        else:
            self._marker_end = -1
        return [text]

    def _decided(self) -> list[Piece]:
        pieces: list[Piece] = []
        try:
            while self._at < len(self._text):
                if marker := self._step():
                    if self._at > self._told:
                        pieces.append(self._text[self._told : self._at])
                    pieces.append(marker)
                    self._at = self._told = self._marker_end = self._at + len(marker.text)
            certain = self._at
        except _UndecidedError:
            certain = self._next_opening()
        if certain > self._told:
            pieces.append(self._text[self._told : certain])
            self._told = certain
        self._forget()
        return pieces

    def _next_opening(self) -> int:
        """Return where the next marker may begin, whatever the undecided text turns out to be."""
        for opening in _OPENING.finditer(self._text, max(self._told, self._at)):
            if _may_begin_marker(self._text, opening.start()):
                return opening.start()
        return len(self._text)

    def _forget(self) -> None:
        """Drop the text that is decided."""
        if self._at:
            self._text = self._text[self._at :]
            self._told = max(self._told - self._at, 0)
            self._marker_end -= self._at
            self._at = 0

    def _step(self) -> Marker | None:
        """Skip what begins here, or return the marker that does."""
        match self._place:
            case _State.LINE_START:
                self._begin_line()
            case _State.VERBATIM_LINE:
                self._end_line()
            case _State.INLINE:
                return self._inline()
        return None

    def _begin_line(self) -> None:
        if self._closing:
            if self._skip(self._closing):
                self._closing = None
            else:
                self._place = _State.VERBATIM_LINE
        elif _PLAIN_LINE.match(self._text, self._at):
            self._begin_paragraph()
        elif fence := self._match(_FENCE):
            self._closing = _closing(fence["run"])
            self._at = fence.end()
        elif self._skip(_BLANK):
            self._after_blank = True
        else:
            self._place = self._kind_of_line()

    def _begin_paragraph(self) -> None:
        if self._after_blank:
            self._in_list = self._after_blank = False
        self._place = _State.INLINE

    def _kind_of_line(self) -> _State:
        if self._match(_LIST_ITEM):
            self._in_list = True
        elif self._match(_INDENTED):
            if self._after_blank and not self._in_list:
                return _State.VERBATIM_LINE
        elif self._match(_DEFINITION):
            return _State.VERBATIM_LINE
        elif self._after_blank and not self._text[self._at].isspace():
            self._in_list = False
        self._after_blank = False
        return _State.INLINE

    def _end_line(self) -> None:
        found = self._text.find("\n", self._at)
        if found < 0:
            self._at = len(self._text)
        else:
            self._at, self._place = found + 1, _State.LINE_START

    def _inline(self) -> Marker | None:
        special = _SPECIAL.search(self._text, self._at)
        self._at = special.start() if special else len(self._text)
        match special.group() if special else "":
            case "\n":
                self._end_line()
            case "`":
                self._skip_code()
            case "\\":
                self._skip_one(_ESCAPE)
            case "<":
                self._skip_one(_AUTOLINK)
            case "[":
                return self._bracket()
            case "【" | "［":
                return self._wide_bracket()
            case _:
                pass
        return None

    def _bracket(self) -> Marker | None:
        if plain := _PLAIN_MARKER.match(self._text, self._at):
            return Marker(plain.group(), (int(plain[1]),))
        if not self._ended and _PLAIN_MARKER_BEGINNING.match(self._text, self._at):
            raise _UndecidedError
        if marker := self._marker(_MARKER):
            return self._with_address(marker)
        label = self._match(_LINK_LABEL, within=LONGEST_LABEL)
        link = self._match(_ADDRESS, label.end() - self._at) if label else None
        found = link or self._match(_REFERENCE, within=LONGEST_LABEL)
        self._at = found.end() if found else self._at + 1
        return None

    def _with_address(self, marker: Marker) -> Marker | None:
        """Take the address that follows into the marker; skip a link that has a number for a label."""
        address = self._match(_ADDRESS, len(marker.text))
        if not address:
            return marker
        if marker.text.startswith("[[") or self._at == self._marker_end:
            return Marker(marker.text + address.group(), marker.numbers)
        self._at = address.end()
        return None

    def _wide_bracket(self) -> Marker | None:
        marker = self._marker(_WIDE_MARKER)
        if not marker:
            self._at += 1
        return marker

    def _marker(self, pattern: "regex.Pattern[str]") -> Marker | None:
        found = self._match(pattern)
        numbers = _numbers(found["list"]) if found else ()
        return Marker(found.group(), numbers) if found and numbers else None

    def _skip_code(self) -> None:
        """Skip a code span, or only its backticks if it is not closed soon, in the same paragraph."""
        end = self._at + LONGEST_CODE
        stop = _PARAGRAPH_END.search(self._text, self._at, end)
        limit = stop.start() if stop else min(end, len(self._text))
        decided = stop is not None or self._has_all(LONGEST_CODE)
        opening, *runs = _BACKTICKS.finditer(self._text, self._at, limit)
        for run in runs:
            if len(run.group()) == len(opening.group()) and (decided or run.end() < limit):
                self._at = run.end()
                return
        if not decided:
            raise _UndecidedError
        self._at = opening.end()

    def _skip_one(self, pattern: "regex.Pattern[str]") -> None:
        """Skip the pattern if it begins here, else one character."""
        if not self._skip(pattern):
            self._at += 1

    def _skip(self, pattern: "regex.Pattern[str]") -> bool:
        found = self._match(pattern)
        if found:
            self._at = found.end()
        return found is not None

    def _match(
        self, pattern: "regex.Pattern[str]", after: int = 0, within: int = MAX_HELD
    ) -> "regex.Match[str] | None":
        """Match the pattern here, or so many characters after, at most `within` characters from here.

        Raises:
            _UndecidedError: more text may yet make it match.
        """
        # A partial match is one that ends where the text ends for now. Deciding on it would make the
        # result depend on how the stream was split.
        partial = not self._has_all(within)
        found = pattern.match(self._text, self._at + after, self._at + within, partial=partial)
        if found and found.partial:
            raise _UndecidedError
        return found

    def _has_all(self, within: int) -> bool:
        """Return whether all text has arrived that may decide what begins here."""
        return self._ended or len(self._text) >= self._at + within


def _may_begin_marker(text: str, start: int) -> bool:
    return bool(
        _PLAIN_MARKER_BEGINNING.match(text, start)
        or _MARKER.match(text, start, partial=True)
        or _WIDE_MARKER.match(text, start, partial=True)
    )


def _closing(run: str) -> "regex.Pattern[str]":
    return regex.compile(rf"[ \t>]*+{run[0]}{{{len(run)},}}+[ \t\r]*+\n")


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a list, each once; none if a range is reversed or too long."""
    numbers: dict[int, None] = {}
    for first, last in _NUMBERS.findall(text):
        low, high = int(first), int(last or first)
        if not low <= high < low + LONGEST_RANGE:
            return ()
        numbers |= dict.fromkeys(range(low, high + 1))
    return tuple(numbers)
