"""Remove the list of sources that a model writes behind its answer: Quarry makes that list itself.

A list is a heading such as `## References`, which may stand below a rule, with nothing behind it but lines that begin with a
marker or a link. What looks like one and is none stays: one that other text follows, one in code, one that is the whole text.
"""

import re
from enum import Enum, auto

import regex

_WORDS = (
    *("references", "reference list", "sources", "cited sources", "sources cited", "citations"),
    *("bibliography", "works cited"),
    *("参考文献", "参考资料", "参考来源", "引用", "引用来源", "来源", "资料来源", "信息来源"),
    *(
        "參考文獻",
        "參考資料",
        "來源",
        "出典",
        "参考資料",
        "情報源",
        "引用元",
        "참고문헌",
        "참고 문헌",
        "출처",
    ),
    *(
        "quellen",
        "quellenangaben",
        "quellenverzeichnis",
        "referenzen",
        "literatur",
        "einzelnachweise",
    ),
    *("références", "bibliographie", "referencias", "fuentes", "fonti", "riferimenti"),
    *("referências", "fontes", "bronnen", "источники", "список литературы"),
)
_WORD = "|".join(map(re.escape, _WORDS))
_HEADING = regex.compile(
    rf"[ ]{{0,3}}(?:#{{1,6}}[ \t]*+)?+[*_]{{0,3}}[ \t]*+(?:{_WORD})[ \t]*+[:：]?+[*_]{{0,3}}[:：]?+[ \t]*+#*+[ \t\r]*+",
    regex.IGNORECASE,
)
_RULE = regex.compile(r"[ ]{0,3}(?:(?:-[ \t]*+){3,}+|(?:\*[ \t]*+){3,}+|(?:_[ \t]*+){3,}+)\r?+")
_UNDERLINE = regex.compile(r"[ ]{0,3}(?:-++|=++)[ \t\r]*+")
_BLANK = regex.compile(r"[ \t\r]*+")
_NUMBER = r"[0-9０-９]{1,6}+"
_ENTRY = regex.compile(
    r"[ \t>]*+(?:(?:[-*+•]|[0-9]{1,3}+[.)])[ \t]++)?+[*_]{0,2}"
    rf"(?:\[{{1,2}}\^?+{_NUMBER}|【{_NUMBER}|［{_NUMBER}|\[[^\[\]\n]*+\]\(|<?https?://)[^\n]*+",
    regex.IGNORECASE,
)
_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})")


_PIECE = re.compile(r"[^\n]*\n|[^\n]+")


class _Place(Enum):
    TEXT = auto()
    """In a line that stays."""
    GAP = auto()
    """Behind the end of such a line, where a list may begin."""
    RULE = auto()
    HEADING = auto()
    ENTRIES = auto()


class BibliographyFilter:
    """Passes a streamed text on, without the list at its end; what is passed on is the same however the text is split."""

    def __init__(self) -> None:
        self._place = _Place.TEXT
        self._held = ""
        """Whole lines that may be the list, from the end of the line before them."""
        self._line = ""
        """What has arrived of a line; all of it is passed on already where the line stays."""
        self._fence = ""
        """What opened the block of code that the text is in."""
        self._has_text = False

    def add(self, text: str) -> str:
        """Return what is certain to stay."""
        passed = "".join(map(self._add, _PIECE.findall(text)))
        self._has_text = self._has_text or bool(passed.strip())
        return passed

    def end(self) -> str:
        """Return what was held back, unless it is a list. Nothing may be added afterwards."""
        is_open = self._line and self._place is not _Place.TEXT
        passed = self._end_line() if is_open else ""
        is_list = self._place is _Place.ENTRIES and (self._has_text or passed.strip())
        return passed if is_list else passed + self._held

    def _add(self, piece: str) -> str:
        self._line += piece
        if self._place is _Place.TEXT:
            return self._pass_on(piece)
        if piece.endswith("\n"):
            return self._end_line()
        return "" if _may_follow(self._place, self._line) else self._release()

    def _end_line(self) -> str:
        """Hold a line back that goes on with what may be a list; without one, return all that stays."""
        if place := _follow(self._place, self._line.removesuffix("\n")):
            self._place, self._held, self._line = place, self._held + self._line, ""
            return ""
        if self._place is _Place.GAP:
            return self._release()
        # A list may begin with this line.
        passed = self._held.removesuffix("\n")
        self._place, self._held = _Place.GAP, "\n"
        return passed + self._end_line()

    def _release(self) -> str:
        passed, self._held, self._place = self._held, "", _Place.TEXT
        return passed + self._pass_on(self._line)

    def _pass_on(self, piece: str) -> str:
        """Return a piece of a line that stays; its end is held back."""
        if not piece.endswith("\n"):
            return piece
        self._fence, self._line = _find_fence(self._line, self._fence), ""
        if self._fence:
            return piece
        self._place, self._held = _Place.GAP, "\n"
        return piece.removesuffix("\n")


def _follow(place: _Place, line: str) -> _Place | None:
    """Return where a list is with this line; None where it is none."""
    match place:
        case _Place.GAP if _RULE.fullmatch(line):
            return _Place.RULE
        case _Place.GAP | _Place.RULE if _HEADING.fullmatch(line):
            return _Place.HEADING
        case _Place.HEADING if _UNDERLINE.fullmatch(line):
            return place
        case _Place.HEADING | _Place.ENTRIES if _ENTRY.fullmatch(line):
            return _Place.ENTRIES
        case _:
            return place if _BLANK.fullmatch(line) else None


def _may_follow(place: _Place, line: str) -> bool:
    """Return whether a line of which this much has arrived may go on with a list, or begin one."""
    of_list = (_ENTRY, _UNDERLINE) if place in (_Place.HEADING, _Place.ENTRIES) else ()
    patterns = (_BLANK, _RULE, _HEADING, *of_list)
    return any(pattern.fullmatch(line, partial=True) for pattern in patterns)


def _find_fence(line: str, fence: str) -> str:
    """Return what opened the block of code that goes on behind a line; empty where none does."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    rest = line[found.end() :]
    if not fence:
        is_inline = found[1][0] == "`" and "`" in rest
        return "" if is_inline else found[1]
    return "" if found[1].startswith(fence) and not rest.strip() else fence
