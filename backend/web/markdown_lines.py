"""A section's text cut into the lines that make one block each: a paragraph, an item, code."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import regex

from connectors.document import Span

LinesKind: TypeAlias = Literal["p", "li", "h", "quote", "code"]

_ITEM = regex.compile(r"(?P<indent>[ \t]*+)(?P<mark>[-*+•]|\d{1,9}[.)])[ \t]++(?=\S)")
_FENCE = regex.compile(r"[ \t]*+(?:`{3,}+|~{3,}+)")
_HEADING = regex.compile(r" {0,3}+#{1,6}[ \t]++(?=\S)")
_QUOTE = regex.compile(r"(?:[ \t]*+>)++[ \t]?+")
_INDENT = regex.compile(r"[ \t]*+")
_BULLETS = "-*+•"
_DEEPEST = 5
_CONTINUED = {("p", "p"), ("li", "p"), ("quote", "quote"), ("quote", "p")}


@dataclass(frozen=True, slots=True)
class Lines:
    kind: LinesKind
    spans: tuple[Span, ...] = ()
    """In the text, without line ends and without what marks them as this kind."""
    mark: str = ""
    """Of a list's item: its number, or a bullet."""
    depth: int = 0
    """Of a list's item, 0 for the outermost."""


def cut(text: str, *, markdown: bool) -> Iterator[Lines]:
    """Yield the blocks of `text` in order; only what is blank is left out, and of Markdown its marks."""
    cutter = _Cutter(text, markdown=markdown)
    start = 0
    for line in text.split("\n"):
        yield from cutter.take(Span(start, start + len(line)))
        start += len(line) + 1
    yield from cutter.close()


class _Cutter:
    def __init__(self, text: str, *, markdown: bool) -> None:
        self._text = text
        self._markdown = markdown
        self._open: Lines | None = None
        self._spans: list[Span] = []

    def take(self, line: Span) -> Iterator[Lines]:
        text = line.of(self._text)
        fence = self._markdown and _FENCE.match(text) is not None
        if self._open and self._open.kind == "code" and not fence:
            self._spans.append(line)
        elif fence or not text.strip():
            was_code = self._open is not None and self._open.kind == "code"
            yield from self.close()
            self._open = Lines("code") if fence and not was_code else None
        else:
            begun = self._begun(line, text)
            if not self._goes_on(begun):
                yield from self.close()
                self._open = begun
            self._spans += begun.spans

    def close(self) -> Iterator[Lines]:
        if self._open and self._spans:
            yield replace(self._open, spans=tuple(self._spans))
        self._open, self._spans = None, []

    def _begun(self, line: Span, text: str) -> Lines:
        """Return the line as a block by itself."""
        if item := _ITEM.match(text):
            depth = min(len(item["indent"].expandtabs(4)) // 2, _DEEPEST)
            mark = "" if item["mark"] in _BULLETS else item["mark"]
            return Lines("li", (self._without(_ITEM, line),), mark, depth)
        if not self._markdown:
            return Lines("p", (line,))
        if _HEADING.match(text):
            return Lines("h", (self._without(_HEADING, line),))
        if _QUOTE.match(text):
            return Lines("quote", (self._without(_QUOTE, line),))
        return Lines("p", (self._without(_INDENT, line),))

    def _goes_on(self, begun: Lines) -> bool:
        """Return whether the open block goes on with this line, as a lazy reader would take it."""
        return self._open is not None and (self._open.kind, begun.kind) in _CONTINUED

    def _without(self, mark: regex.Pattern[str], line: Span) -> Span:
        found = mark.match(self._text, line.start, line.end)
        return Span(found.end(), line.end) if found else line
