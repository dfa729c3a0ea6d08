"""Reading messages from mbox files, where each follows a line that begins with `From `.

Quoting is undone as in the mboxrd format: a line of `>`s and `From ` loses one `>`. In the older mboxo
format this is wrong only for lines that began with `>From ` before they were quoted. See RFC 4155,
appendix A, and https://www.loc.gov/preservation/digital/formats/.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from io import BufferedReader

MBOX_PREFIX = b"From "
"""Every mbox file that contains a message begins with it."""

_MAX_LINE_BYTES = 65_536
_MAX_HEADER_BYTES = 65_536
"""The rest of the headers is only read with the message itself."""
_MAX_TIMESTAMP = 253_402_300_799
# Traditionally an address, a time and a year; some mail programs leave them out.
_SEPARATOR = re.compile(rb"From (?:-?\s*|\S.*\d\d?:\d\d.*\d{4}.*)")
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message in an mbox file."""

    offset: int
    """Where its first header begins, in bytes."""
    size: int
    headers: bytes
    received: int
    """Seconds since 1970, UTC; 0 if the separator states no time."""


def iter_messages(file: BufferedReader) -> Iterator[StoredMessage]:
    """Yield the messages in one pass; only the headers of one are held in memory.

    Text before the first separator is ignored.
    """
    current: _MessageBuilder | None = None
    at, after_blank, within_line = 0, True, False
    while line := file.readline(_MAX_LINE_BYTES):
        is_line_start = not within_line
        if (
            is_line_start
            and after_blank
            and line.startswith(MBOX_PREFIX)
            and _SEPARATOR.fullmatch(line.rstrip(b"\r\n"))
        ):
            if current is not None:
                yield current.build(at)
            current = _MessageBuilder(at + len(line), _parse_time(line))
        elif current is not None:
            current.add_line(line)
        at += len(line)
        within_line = not line.endswith(b"\n")
        after_blank = is_line_start and line in (b"\n", b"\r\n")
    if current is not None:
        yield current.build(at)


def read_message(file: BufferedReader, offset: int, size: int) -> bytes:
    """Return the message at the offset, with quoting undone."""
    file.seek(offset)
    return _QUOTED.sub(rb"\1", file.read(size))


class _MessageBuilder:
    """Collects a message until its end is found."""

    def __init__(self, offset: int, received: int) -> None:
        self._offset = offset
        self._received = received
        self._headers = bytearray()
        self._in_headers = True

    def add_line(self, line: bytes) -> None:
        if not self._in_headers:
            return
        self._in_headers = line not in (b"\n", b"\r\n")
        if len(self._headers) + len(line) <= _MAX_HEADER_BYTES:
            self._headers += line

    def build(self, end: int) -> StoredMessage:
        return StoredMessage(self._offset, end - self._offset, bytes(self._headers), self._received)


def _parse_time(separator: bytes) -> int:
    """Parse a separator such as `From ann@example.com Mon Jan  5 10:00:00 2026`."""
    words = separator.decode("ascii", "replace").split(maxsplit=2)
    try:
        seconds = int(parsedate_to_datetime(words[2]).timestamp())
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0
    return min(max(seconds, 0), _MAX_TIMESTAMP)
