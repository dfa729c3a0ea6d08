"""The files of a commit, and what is different between two."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from connectors.batched import portions
from connectors.errors import TemporarilyUnavailableError
from connectors.files.paths import Parts
from connectors.git_repository.git_command import LATER, Git

_SECONDS = 60.0
_A_CALL = 100
_PLAIN_FILE = "100"
"""With which the modes of plain files begin. 120000 is a link, 160000 another repository."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file as one commit has it."""

    parts: Parts
    blob: str
    """The id of its content."""


@dataclass(frozen=True, slots=True)
class Gone:
    """A file that the earlier of two commits has, and the later has not."""

    parts: Parts


class Files:
    """What lies in the view of a mirror; nothing is asked of the network."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._no_files = git.run("hash-object", "-t", "tree", "--stdin", seconds=_SECONDS)

    def of(self, commit: str) -> Iterator[Entry]:
        """All files of a commit, in git's order, which is the same every time."""
        empty = self._no_files.decode("ascii").strip()
        return (one for one in self.between(empty, commit) if isinstance(one, Entry))

    def between(self, earlier: str, later: str) -> Iterator[Entry | Gone]:
        """What differs, by its path: a file that was moved is gone here and an entry there."""
        told = self._git.fields("diff-tree", "-r", "-z", "--raw", "--no-renames", earlier, later)
        for head in told:
            was, now, _, blob, _ = head.decode("ascii").removeprefix(":").split(" ")
            parts = _parts(next(told))
            if now.startswith(_PLAIN_FILE):
                yield Entry(parts, blob)
            elif was.startswith(_PLAIN_FILE):
                yield Gone(parts)

    def at(self, commit: str, wanted: Sequence[Parts]) -> Iterator[Entry]:
        """Those of the wanted paths at which the commit has a file."""
        for mode, entry in self._looked(commit, wanted):
            if mode.startswith(_PLAIN_FILE):
                yield entry

    def named(self, commit: str, names: Sequence[str]) -> set[str]:
        """Those of the names that something at the root has, a file, a folder or a link."""
        return {entry.parts[0] for _, entry in self._looked(commit, [(name,) for name in names])}

    def _looked(self, commit: str, wanted: Sequence[Parts]) -> Iterator[tuple[str, Entry]]:
        for some in portions(wanted, _A_CALL):
            paths = ["/".join(parts) for parts in some]
            for line in self._git.fields("ls-tree", "-z", "--full-tree", commit, "--", *paths):
                head, _, path = line.partition(b"\t")
                mode, _, blob = head.decode("ascii").split(" ")
                yield mode, Entry(_parts(path), blob)


class Objects:
    """The contents of what is there, read from one `git cat-file` process."""

    def __init__(self, asked: IO[bytes], answered: IO[bytes]) -> None:
        self._asked = asked
        self._answered = answered

    def size(self, name: str) -> int | None:
        """Bytes; none where the object is not there.

        Raises:
            TemporarilyUnavailableError: the repository lies damaged on this disk.
        """
        told = self._told(f"info {name}")
        return None if told[-1] == "missing" else int(told[-1])

    def content(self, name: str) -> bytes:
        """Of an object that is there.

        Raises:
            TemporarilyUnavailableError: the repository lies damaged on this disk.
        """
        size = int(self._told(f"contents {name}")[-1])
        data = self._answered.read(size + 1)
        if len(data) != size + 1:
            raise TemporarilyUnavailableError(_DAMAGED, LATER)
        return data[:-1]

    def _told(self, question: str) -> list[str]:
        try:
            self._asked.write(f"{question}\n".encode("ascii"))
            self._asked.flush()
        except BrokenPipeError as error:
            raise TemporarilyUnavailableError(_DAMAGED, LATER) from error
        words = self._answered.readline().decode("ascii", "replace").split()
        if not words:
            raise TemporarilyUnavailableError(_DAMAGED, LATER)
        return words


_DAMAGED = "the copy of the repository on this machine cannot be read"


@contextmanager
def objects(git: Git) -> Iterator[Objects]:
    with git.talking("cat-file", "--batch-command") as (asked, answered):
        yield Objects(asked, answered)


def _parts(path: bytes) -> Parts:
    return tuple(path.decode("utf-8", "surrogateescape").split("/"))
