"""Whether the folder of an index version still counts.

A folder that was removed can still be read by who has its files open: searched on, it would show what has
been deleted since, or to whom access was taken. So the register is looked into before and after every method.
What a write has returned for, it has written to an index version that was not gone: the writer looks once more
while it holds the writer's lock, which a switch takes too.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.index.versions import IndexVersionReplacedError
from indexing.local.manifest import parsed, read_bytes

_OF_A_FOLDER_THAT_GOES = (ActionRequiredError, TemporarilyUnavailableError, OSError, sqlite3.Error)


class Watch:
    """Tells, at the cost of reading one small file, whether a folder is still registered."""

    def __init__(self, home: Path, folder: str) -> None:
        self._home = home
        self._folder = folder
        self._seen = b""

    def check(self) -> None:
        """Raises IndexVersionReplacedError: the folder is no longer that of an index version."""
        content = read_bytes(self._home)
        if content and content == self._seen:
            return
        register = parsed(self._home, content)
        if self._folder not in register.folders:
            raise IndexVersionReplacedError(
                register.active.index_version if register.active else None
            )
        self._seen = content

    @contextmanager
    def kept(self) -> Iterator[None]:
        """A block whose outcome counts only if the folder is registered all the while."""
        self.check()
        try:
            yield
        except _OF_A_FOLDER_THAT_GOES:
            self.check()
            raise
        self.check()
