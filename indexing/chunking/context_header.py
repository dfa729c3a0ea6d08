"""The context that is embedded around a chunk's text: title, heading path, metadata."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connectors.document import Document, Metadata
from indexing.embedding.embedder import Embedder
from indexing.embedding.token_counting import CHARACTERS_A_TOKEN, head

_CONTEXT_SHARE = 4
_HEADINGS = 8
_OPAQUE_KEY = re.compile(
    r"_.*|(?:.*[\W_])?(?:id|uuid|guid|hash|etag|checksum|md5|sha\d*|cursor|revision|size|bytes)|(?-i:\w+Id)",
    re.IGNORECASE,
)
_OPAQUE_VALUE = re.compile(
    r"\w+://.*|[0-9a-f]{8}[0-9a-f-]{8,}|[\W\d_]*|.{121,}", re.IGNORECASE | re.DOTALL
)


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
