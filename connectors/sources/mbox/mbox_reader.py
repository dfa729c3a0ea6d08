"""Messages in mbox files: one after the other, each behind a line that begins with `From `.

Of the kinds of quoting the one that loses nothing is undone (mboxrd): a line of `>`s and `From ` has
one `>` less. In files of the older kind (mboxo) that is right for all lines but those that had a `>`
to begin with. See RFC 4155, appendix A, and https://www.loc.gov/preservation/digital/formats/.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from io import BufferedReader

BEGINS = b"From "
"""The first bytes of every mbox file that holds a message."""

_LONGEST_LINE = 65_536
_LONGEST_HEADERS = 65_536
"""Bytes; the rest is passed over here, and read with the message."""
_LAST_SECOND = 253_402_300_799
# After the address a time and a year; mail programs of today leave all of it out.
_SEPARATOR = re.compile(rb"From (?:-?\s*|\S.*\d\d?:\d\d.*\d{4}.*)")
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stored:
    """A message in the file."""

    offset: int
    """Of its first header, in bytes."""
    size: int
    headers: bytes
    received: int
    """Seconds since 1970, UTC; 0 where the line before it tells none."""


def stored(file: BufferedReader) -> Iterator[Stored]:
    """The messages of a file, in its order, in one pass; memory holds the headers of one.

    What stands before the first separator is no message.
    """
    begun: _Begun | None = None
    at, after_blank, within_line = 0, True, False
    while line := file.readline(_LONGEST_LINE):
        whole = not within_line
        if (
            whole
            and after_blank
            and line.startswith(BEGINS)
            and _SEPARATOR.fullmatch(line.rstrip(b"\r\n"))
        ):
            if begun is not None:
                yield begun.ended(at)
            begun = _Begun(at + len(line), _moment(line))
        elif begun is not None:
            begun.take(line)
        at += len(line)
        within_line = not line.endswith(b"\n")
        after_blank = whole and line in (b"\n", b"\r\n")
    if begun is not None:
        yield begun.ended(at)


def message(file: BufferedReader, offset: int, size: int) -> bytes:
    """The message there, its quoting undone."""
    file.seek(offset)
    return _QUOTED.sub(rb"\1", file.read(size))


class _Begun:
    """A message whose end is not found yet."""

    def __init__(self, offset: int, received: int) -> None:
        self._offset = offset
        self._received = received
        self._headers = bytearray()
        self._in_headers = True

    def take(self, line: bytes) -> None:
        if not self._in_headers:
            return
        self._in_headers = line not in (b"\n", b"\r\n")
        if len(self._headers) + len(line) <= _LONGEST_HEADERS:
            self._headers += line

    def ended(self, at: int) -> Stored:
        return Stored(self._offset, at - self._offset, bytes(self._headers), self._received)


def _moment(separator: bytes) -> int:
    """`From ann@example.com Mon Jan  5 10:00:00 2026`."""
    words = separator.decode("ascii", "replace").split(maxsplit=2)
    try:
        seconds = int(parsedate_to_datetime(words[2]).timestamp())
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0
    return min(max(seconds, 0), _LAST_SECOND)
