"""Separate the reasoning that some models write into their text, as `<think>…</think>`."""

import re
from collections.abc import Iterator
from typing import TypeAlias

from backend.chat.llm.code_tracker import CodeTracker
from backend.chat.llm.messages import ReasoningDelta, TextDelta

Piece: TypeAlias = TextDelta | ReasoningDelta
_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_TAG_BEGINNING = re.compile(
    r"<(?:/?(?:t(?:h(?:i(?:n(?:k(?:i(?:n(?:g)?)?)?)?)?)?)?)?)?\Z", re.IGNORECASE
)


class ReasoningSplitter:
    """Separates reasoning from text, wherever it begins. A tag in code is text.

    Reasoning within a text is recognized by its closing tag: until then the opening tag may be part of the text.
    """

    def __init__(self) -> None:
        self._held = ""
        """The beginning of what may be a tag."""
        self._opening = ""
        """The tag that opened the reasoning; empty outside."""
        self._thought: list[str] = []
        """Reasoning within the text."""
        self._has_text = False
        self._code = CodeTracker()

    def feed(self, text: str) -> Iterator[Piece]:
        self._held += text
        while tag := _TAG.search(self._held):
            yield from self._tell(self._held[: tag.start()])
            self._held = self._held[tag.end() :]
            yield from self._switch(tag.group())
        beginning = _TAG_BEGINNING.search(self._held)
        certain = beginning.start() if beginning else len(self._held)
        yield from self._tell(self._held[:certain])
        self._held = self._held[certain:]

    def end(self) -> Iterator[Piece]:
        """Return what was held back; a tag within the text that was never closed is text."""
        if self._opening and self._has_text:
            unclosed = [self._opening, *self._thought]
            self._opening, self._thought = "", []
            yield from self._tell("".join(unclosed))
        yield from self._tell(self._held)
        self._held = ""

    def break_off(self) -> Iterator[Piece]:
        """Return what was held back when the model reached its limit; its reasoning stays reasoning."""
        yield from self._tell(self._held)
        self._held = ""
        yield from self._tell_thought()

    def _switch(self, tag: str) -> Iterator[Piece]:
        is_closing = tag.startswith("</")
        if self._opening:
            if is_closing:
                self._opening = ""
                yield from self._tell_thought()
        elif self._code.in_code:
            yield from self._tell(tag)
        elif not is_closing:
            self._opening = tag

    def _tell(self, text: str) -> Iterator[Piece]:
        if self._opening and self._has_text:
            self._thought.append(text)
        elif self._opening and text:
            yield ReasoningDelta(text)
        elif text := text if self._has_text else text.lstrip():
            self._has_text = True
            self._code.feed(text)
            yield TextDelta(text)

    def _tell_thought(self) -> Iterator[Piece]:
        thought, self._thought = "".join(self._thought), []
        if thought:
            yield ReasoningDelta(thought)
