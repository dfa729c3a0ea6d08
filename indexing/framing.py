"""What the embedder reads around a chunk's text: title, heading path, metadata."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connectors.document import Document, Metadata
from indexing.embedding import Embedder
from indexing.tokens import head

_FRAME_SHARE = 4
_HEADINGS = 8
_OPAQUE_KEY = re.compile(
    r"_.*|(?:.*[\W_])?(?:id|uuid|guid|hash|etag|checksum|md5|sha\d*|cursor|revision|size|bytes)|(?-i:\w+Id)",
    re.IGNORECASE,
)
_OPAQUE_VALUE = re.compile(
    r"\w+://.*|[0-9a-f]{8}[0-9a-f-]{8,}|[\W\d_]*|.{121,}", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Frame:
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def around(self, text: str) -> str:
        return "\n".join((*self.before, text, *self.after))

    def with_header(self, header: str) -> "Frame":
        """The same with a table's header row, if there is one, right above the text."""
        return Frame((*self.before, header), self.after) if header else self


class Framer:
    """Frames for the sections of one document, each at most a quarter of the limit.

    What does not fit is left out: the end of the title, the outer headings, metadata from the
    first line that is too long.
    """

    def __init__(self, document: Document, embedder: Embedder, limit: int) -> None:
        self._embedder = embedder
        self._limit = limit
        self._special = self.tokens("")
        self._title = " ".join(document.title.split())
        self._metadata = tuple(_readable(document.metadata))
        self._known: dict[tuple[str, ...], Frame] = {}

    def tokens(self, text: str) -> int:
        """Tokens of a text, special ones included."""
        return self._embedder.count_tokens([text])[0]

    def frame(self, headings: tuple[str, ...]) -> Frame:
        if headings not in self._known:
            self._known[headings] = self._new(headings)
        return self._known[headings]

    def _new(self, headings: tuple[str, ...]) -> Frame:
        room = self._limit // _FRAME_SHARE
        before = []
        if title := head(self._title, room - 1, self._embedder):
            before.append(title)
            room -= self._cost(title)
        if path := self._path(headings, room):
            before.append(path)
            room -= self._cost(path)
        return Frame(tuple(before), tuple(self._lines(room)))

    def _path(self, headings: Sequence[str], room: int) -> str:
        """The innermost headings that fit; those that only say the title again are left out."""
        known = [" ".join(heading.split()) for heading in headings[-_HEADINGS:]]
        path = ""
        for heading in reversed([each for each in known if each and each != self._title]):
            longer = (
                f"{heading} > {path}" if path else head(heading, max(0, room - 1), self._embedder)
            )
            if self._cost(longer) > room:
                break
            path = longer
        return path

    def _lines(self, room: int) -> Iterator[str]:
        for line in self._metadata:
            room -= self._cost(line)
            if room < 0:
                break
            yield line

    def _cost(self, line: str) -> int:
        """Tokens that a line adds, with one for the end of the line."""
        return self.tokens(line) - self._special + 1


def _readable(metadata: Metadata) -> Iterator[str]:
    """`key: value` for what a person would say; no ids, digests, addresses, bare numbers, essays."""
    for key in sorted(metadata):
        values = metadata[key]
        text = values if isinstance(values, str) else ", ".join(values)
        line = " ".join(text.split())
        if line and not _OPAQUE_KEY.fullmatch(key) and not _OPAQUE_VALUE.fullmatch(line):
            yield f"{key}: {line}"
