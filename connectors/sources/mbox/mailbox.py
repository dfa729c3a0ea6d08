"""Reading the mbox files of a folder as a mailbox.

If the size or the time of any file changed, all files are read again: that is cheap enough not to keep a
record of which message is in which file.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote_from_bytes, unquote_to_bytes

from connectors.errors import SourceAuthError, TemporarilyUnavailableError
from connectors.files.paths import PathParts
from connectors.files.walker import File, InaccessiblePath, open_file, read_head, walk_files
from connectors.mail.headers import Envelope, parse_envelope
from connectors.mail.sync import FetchedMessage
from connectors.sources.mbox.mbox_reader import MBOX_PREFIX, iter_messages, read_message
from connectors.text_cleaning import to_one_line

_RETRY_AFTER = timedelta(minutes=5)
_HEADER_BYTES = 65_536


class MboxFiles:
    """Implements `connectors.mail.sync.Mailbox`."""

    def __init__(
        self,
        root: Path,
        enters: Callable[[PathParts], bool],
        includes: Callable[[PathParts], bool],
        largest_message: int,
    ) -> None:
        """Prepare to read the files below `root`.

        `enters` decides on files and folders whether to look at them, `includes` on files whether to read them.
        """
        self._root = root
        self._enters = enters
        self._includes = includes
        self._largest = largest_message
        self._stats: dict[str, tuple[int, int]] = {}

    def read_state(self) -> str:
        digest = hashlib.sha256(str(self._largest).encode())
        for file in self._files():
            values = [_to_key(file.parts), file.size, file.mtime_ns]
            digest.update(json.dumps(values).encode())
        return digest.hexdigest()

    def read_envelopes(self) -> Iterator[Envelope]:
        for found in self._files():
            with self._os_errors(found.parts), open_file(self._root, found.parts) as file:
                stat = os.fstat(file.fileno())
                self._stats[_to_key(found.parts)] = (stat.st_size, stat.st_mtime_ns)
                for one in iter_messages(file):
                    yield parse_envelope(
                        one.headers,
                        folder=_to_key(found.parts),
                        number=one.offset,
                        size=one.size,
                        received=one.received or max(stat.st_mtime_ns // 10**9, 0),
                    )

    def fetch_bodies(self, messages: Sequence[Envelope]) -> Iterator[FetchedMessage]:
        for key in dict.fromkeys(one.folder for one in messages):
            own = [one for one in messages if one.folder == key]
            with self._os_errors(_to_parts(key)), open_file(self._root, _to_parts(key)) as file:
                stat = os.fstat(file.fileno())
                is_unchanged = self._stats[key] == (stat.st_size, stat.st_mtime_ns)
                for one in own:
                    data = read_message(file, one.number, one.size)
                    if not is_unchanged:
                        self._check_same(one, data)
                    yield one, data

    def path(self, key: str) -> tuple[str, ...]:
        return tuple(map(to_one_line, _to_parts(key)))

    def link(self, one: Envelope) -> str:
        """Return the link to the file: there are none to a message within it."""
        return self._root.joinpath(*_to_parts(one.folder)).as_uri()

    def _files(self) -> Iterator[File]:
        """Yield the mbox files. A file that cannot be read is an error, lest its mail look deleted."""
        with self._os_errors(()):
            for found in walk_files(self._root, self._enters):
                if isinstance(found, InaccessiblePath):
                    self._raise_unreadable(found.parts, found.error)
                elif self._includes(found.parts) and self._is_mbox(found):
                    yield found

    def _is_mbox(self, file: File) -> bool:
        with self._os_errors(file.parts):
            return read_head(self._root, file.parts, len(MBOX_PREFIX)) == MBOX_PREFIX

    def _check_same(self, one: Envelope, data: bytes) -> None:
        """Check that the message is still at its offset, as it is where mail was only appended."""
        now = parse_envelope(
            data[:_HEADER_BYTES], folder=one.folder, number=one.number, size=one.size, received=0
        )
        if now.key != one.key:
            raise TemporarilyUnavailableError(
                f"{'/'.join(self.path(one.folder))} changed while it was read", _RETRY_AFTER
            )

    @contextmanager
    def _os_errors(self, parts: PathParts) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._raise_unreadable(parts, error)

    def _raise_unreadable(self, parts: PathParts, error: OSError) -> NoReturn:
        name = to_one_line(str(self._root.joinpath(*parts)))
        if isinstance(error, PermissionError):
            raise SourceAuthError(
                f"{name} cannot be read (permission denied): make it readable for Quarry's user, or"
                " exclude it"
            ) from error
        raise TemporarilyUnavailableError(
            f"{name} cannot be read: {error.strerror or error}", _RETRY_AFTER
        ) from error


def _to_key(parts: PathParts) -> str:
    """Quote the path, so that it is valid Unicode."""
    return quote_from_bytes(os.fsencode("/".join(parts)))


def _to_parts(key: str) -> PathParts:
    return tuple(os.fsdecode(unquote_to_bytes(key)).split("/"))
