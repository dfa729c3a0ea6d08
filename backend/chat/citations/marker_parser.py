"""Find citation markers in streamed Markdown, and nothing that only looks like one.

A marker is `[1]`, `[1, 2]`, `[1;2]`, `[1-3]`, `[[1]]`, `[[1, 2]]`, `【1】`, `【1†source】` or `［1］`. Code,
links, images, reference links and their definitions, autolinks and escaped brackets are text,
whatever they hold: as in CommonMark 0.31, except that a link is on one line, and that indented
lines are code only outside of lists.

What begins at an offset is decided by at most `MAX_HELD` characters from there, and only once they
have arrived or can no longer change it. So the result is the same however the text was split, no more
than that is ever held back, and time is linear.
"""

from dataclasses import dataclass
from enum import Enum, auto
from itertools import groupby
from typing import TypeAlias

import regex

MAX_HELD = 1_000
LONGEST_RANGE = 20

_GAP = r"[ \t\u00a0\u3000]*+"
_NUMBER = r"[1-9１-９][0-9０-９]{0,5}+"
_RANGE = rf"{_NUMBER}(?:{_GAP}[-‐‑–—~〜～]{_GAP}{_NUMBER})?+"
_LIST = rf"{_GAP}{_RANGE}(?:{_GAP}[,;，；、]{_GAP}{_RANGE})*+{_GAP}"
_MARKER = regex.compile(rf"\[(?:(?P<list>{_LIST})|\[(?P<list>{_LIST})\])\]")
_WIDE_MARKER = regex.compile(rf"【(?P<list>{_LIST})(?:†[^】\n]{{0,80}}+)?+】|［(?P<list>{_LIST})］")
_NUMBERS = regex.compile(rf"({_NUMBER})(?:{_GAP}[-‐‑–—~〜～]{_GAP}({_NUMBER}))?+")

_PLAIN = r"[^\[\]\\\n]|\\."
_NO_FOOTNOTE = r"[^\[\]\\\n^]|\\."
_ONE_DEEP = rf"\[(?:{_PLAIN})*+\]"
_TWO_DEEP = rf"\[(?:{_PLAIN}|{_ONE_DEEP})*+\]"
_LABEL = rf"\[(?:{_PLAIN}|{_ONE_DEEP}|{_TWO_DEEP})*+\]"
_URL = r"(?:[^\s()<\\]|\\.|\((?:[^\s()\\]|\\.)*+\))*+"
_TITLE = r"""(?:"[^"\n]*+"|'[^'\n]*+'|\([^()\n]*+\))"""
_LINK = regex.compile(rf"{_LABEL}\([ \t]*+(?:<[^<>\n]*+>|{_URL})(?:[ \t]++{_TITLE})?+[ \t]*+\)")
_REFERENCE = regex.compile(
    rf"\[(?:{_NO_FOOTNOTE})(?:{_PLAIN})*+\](?P<label>\[(?:(?:{_NO_FOOTNOTE})(?:{_PLAIN})*+)?+\])"
)
_DEFINITION = regex.compile(rf" {{0,3}}\[(?:{_NO_FOOTNOTE})(?:{_PLAIN})*+\]:")
_AUTOLINK = regex.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}+:[^\s<>]*+>")
_ESCAPE = regex.compile(r"\\[!-/:-@\[-`{-~]")
_BACKTICKS = regex.compile(r"`++")
_PARAGRAPH_END = regex.compile(r"\n[ \t\r>]*+(?:\n|`{3}|~{3})")
_SPECIAL = regex.compile(r"[\[【［`<\\\n]")

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
        """What was held back, and what has arrived since."""
        self._at = 0
        self._ended = False
        self._place = _State.LINE_START
        self._closing: regex.Pattern[str] | None = None
        """Matches the line that closes the current fenced code; None outside."""
        self._in_list = False
        self._after_blank = True

    def feed(self, text: str) -> list[Piece]:
        self._text += text
        return self._decided()

    def end(self) -> list[Piece]:
        """Return what was held back. Nothing may be fed afterwards."""
        self._ended = True
        return self._decided()

    def _decided(self) -> list[Piece]:
        pieces: list[Piece] = []
        decided = 0
        try:
            while self._at < len(self._text):
                if marker := self._step():
                    pieces += [self._text[decided : self._at], marker]
                    decided = self._at = self._at + len(marker.text)
        except _UndecidedError:
            pass
        pieces.append(self._text[decided : self._at])
        self._text, self._at = self._text[self._at :], 0
        return [piece for piece in pieces if piece]

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
        elif fence := self._match(_FENCE):
            self._closing = _closing(fence["run"])
            self._at = fence.end()
        elif self._skip(_BLANK):
            self._after_blank = True
        else:
            self._place = self._kind_of_line()

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
        if self._skip(_LINK):
            return None
        marker = self._marker(_MARKER)
        reference = self._match(_REFERENCE)
        if reference and not (marker and _MARKER.fullmatch(reference["label"])):
            self._at = reference.end()
            return None
        if not marker:
            self._at += 1
        return marker

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
        """Skip a code span, or only its backticks if it is not closed in the paragraph."""
        end = self._at + MAX_HELD
        stop = _PARAGRAPH_END.search(self._text, self._at, end)
        limit = stop.start() if stop else min(end, len(self._text))
        decided = stop is not None or self._final()
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

    def _match(self, pattern: "regex.Pattern[str]") -> "regex.Match[str] | None":
        """Match the pattern here. Raises _UndecidedError: more text may yet make it match."""
        end = self._at + MAX_HELD
        # A partial match is one that ends where the text ends for now. Deciding on it would make the
        # result depend on how the stream was split.
        found = pattern.match(self._text, self._at, end, partial=not self._final())
        if found and found.partial:
            raise _UndecidedError
        return found

    def _final(self) -> bool:
        """Whether all text has arrived that may decide what begins here."""
        return self._ended or len(self._text) >= self._at + MAX_HELD


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
