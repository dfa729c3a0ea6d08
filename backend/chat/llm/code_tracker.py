"""Know whether streamed Markdown is within code."""

import re

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")


class CodeTracker:
    """Follows the fences of a text, and the backtick right before what comes next."""

    def __init__(self) -> None:
        self._line = ""
        """The last line so far."""
        self._fence = ""
        """What opened the current fenced code; empty outside."""

    def feed(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._end_line(line)

    @property
    def in_code(self) -> bool:
        return bool(self._fence) or self._line.endswith("`")

    def _end_line(self, line: str) -> None:
        found = _FENCE.match(line)
        if not found:
            return
        if not self._fence:
            self._fence = found[1]
        elif found[1].startswith(self._fence) and not line[found.end() :].strip():
            self._fence = ""
