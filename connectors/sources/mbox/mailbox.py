"""The mbox files of a folder as a mailbox.

All of them are gone through whenever one is of another size or time than before: reading them from
end to end costs less than a record of what was where would be worth.
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

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.extraction.result import CannotRead, one_line
from connectors.files.paths import Parts
from connectors.files.walker import Closed, File, head, opened, walk
from connectors.mail.headers import Envelope, envelope
from connectors.sources.mbox.mbox_reader import BEGINS, message, stored

_LATER = timedelta(minutes=5)
_HEADERS = 65_536


class MboxFiles:
    """See `connectors.mail.sync.Mailbox`."""

    def __init__(
        self,
        root: Path,
        enters: Callable[[Parts], bool],
        includes: Callable[[Parts], bool],
        largest_message: int,
    ) -> None:
        """`enters` says of a file or folder whether to look at it, `includes` of a file whether it is
        meant."""
        self._root = root
        self._enters = enters
        self._includes = includes
        self._largest = largest_message
        self._seen: dict[str, tuple[int, int]] = {}

    def state(self) -> str:
        digest = hashlib.sha256(str(self._largest).encode())
        for file in self._files():
            told = [_key(file.parts), file.size, file.mtime_ns]
            digest.update(json.dumps(told).encode())
        return digest.hexdigest()

    def envelopes(self) -> Iterator[Envelope]:
        for found in self._files():
            with self._reading(found.parts), opened(self._root, found.parts) as file:
                told = os.fstat(file.fileno())
                self._seen[_key(found.parts)] = (told.st_size, told.st_mtime_ns)
                for one in stored(file):
                    yield envelope(
                        one.headers,
                        folder=_key(found.parts),
                        number=one.offset,
                        size=one.size,
                        received=one.received or max(told.st_mtime_ns // 10**9, 0),
                    )

    def bodies(self, messages: Sequence[Envelope]) -> Iterator[tuple[Envelope, bytes | CannotRead]]:
        for key in dict.fromkeys(one.folder for one in messages):
            own = [one for one in messages if one.folder == key]
            with self._reading(_parts(key)), opened(self._root, _parts(key)) as file:
                told = os.fstat(file.fileno())
                is_still = self._seen[key] == (told.st_size, told.st_mtime_ns)
                for one in own:
                    data = message(file, one.number, one.size)
                    if not is_still:
                        self._check_same(one, data)
                    yield one, data

    def path(self, key: str) -> tuple[str, ...]:
        return tuple(map(one_line, _parts(key)))

    def link(self, one: Envelope) -> str:
        """The file; programs that open one message in it know no address for that."""
        return self._root.joinpath(*_parts(one.folder)).as_uri()

    def _files(self) -> Iterator[File]:
        """Those that begin as an mbox does, or are empty. What cannot be looked at must not look
        deleted."""
        with self._reading(()):
            for found in walk(self._root, self._enters):
                if isinstance(found, Closed):
                    self._tell(found.parts, found.error)
                elif self._includes(found.parts) and self._begins(found):
                    yield found

    def _begins(self, file: File) -> bool:
        with self._reading(file.parts):
            return head(self._root, file.parts, len(BEGINS)) == BEGINS

    def _check_same(self, one: Envelope, data: bytes) -> None:
        """A file that only grew has its messages where they were."""
        now = envelope(
            data[:_HEADERS], folder=one.folder, number=one.number, size=one.size, received=0
        )
        if now.key != one.key:
            raise TemporarilyUnavailableError(
                f"{'/'.join(self.path(one.folder))} was written to while it was read", _LATER
            )

    @contextmanager
    def _reading(self, parts: Parts) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._tell(parts, error)

    def _tell(self, parts: Parts, error: OSError) -> NoReturn:
        name = one_line(str(self._root.joinpath(*parts)))
        if isinstance(error, PermissionError):
            raise ActionRequiredError(
                f"{name} cannot be read (permission denied): let Quarry's user read it, or exclude it"
            ) from error
        raise TemporarilyUnavailableError(
            f"{name} cannot be read: {error.strerror or error}", _LATER
        ) from error


def _key(parts: Parts) -> str:
    """The path as a name that any database holds."""
    return quote_from_bytes(os.fsencode("/".join(parts)))


def _parts(key: str) -> Parts:
    return tuple(os.fsdecode(unquote_to_bytes(key)).split("/"))
