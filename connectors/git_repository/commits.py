"""The files, file contents and history of commits in a local repository; nothing here uses the network."""

import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from connectors.batched import batched
from connectors.document import Person
from connectors.errors import TemporarilyUnavailableError
from connectors.extraction.result import parse_people
from connectors.files.paths import PathParts
from connectors.git_repository.git_command import RETRY_AFTER, Git

_HASH_SECONDS = 60.0
_PATHS_PER_CALL = 100
_PATHS_PER_QUERY = 500
_REGULAR_FILE = "100"
"""The modes of regular files begin with it. 120000 is a symbolic link, 160000 a submodule."""
_SEPARATOR = "\x1f"
_CO_AUTHORS = "%(trailers:key=Co-authored-by,valueonly=true,unfold=true,separator=%x1f)"
_DAMAGED = "the local copy of the repository is damaged"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file in a commit."""

    parts: PathParts
    blob: str
    """The id of its content."""


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """A file that is in the earlier of two commits and not in the later."""

    parts: PathParts


@dataclass(frozen=True, slots=True)
class LastChange:
    """The last commit that changed a file."""

    at: datetime | None
    """When the commit was made; None where its time is out of range."""
    authors: tuple[Person, ...]


class CommitTrees:
    """Lists and compares the files of commits."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._empty_tree = git.run("hash-object", "-t", "tree", "--stdin", seconds=_HASH_SECONDS)

    def list_files(self, commit: str) -> Iterator[FileEntry]:
        """Yield all files of a commit in git's order, which is stable."""
        empty = self._empty_tree.decode("ascii").strip()
        return (one for one in self.diff(empty, commit) if isinstance(one, FileEntry))

    def diff(self, earlier: str, later: str) -> Iterator[FileEntry | DeletedFile]:
        """Yield what differs, by path: a moved file is deleted at one path and added at the other."""
        fields = self._git.iter_fields(
            "diff-tree", "-r", "-z", "--raw", "--no-renames", earlier, later
        )
        for head in fields:
            old_mode, new_mode, _, blob, _ = head.decode("ascii").removeprefix(":").split(" ")
            parts = _decode_path(next(fields))
            if new_mode.startswith(_REGULAR_FILE):
                yield FileEntry(parts, blob)
            elif old_mode.startswith(_REGULAR_FILE):
                yield DeletedFile(parts)

    def find_files(self, commit: str, paths: Sequence[PathParts]) -> Iterator[FileEntry]:
        """Yield the files that the commit has at these paths."""
        for mode, entry in self._list_paths(commit, paths):
            if mode.startswith(_REGULAR_FILE):
                yield entry

    def find_root_names(self, commit: str, names: Sequence[str]) -> set[str]:
        """Return those of the names that exist at the root, as a file, folder or link."""
        return {
            entry.parts[0] for _, entry in self._list_paths(commit, [(name,) for name in names])
        }

    def _list_paths(
        self, commit: str, paths: Sequence[PathParts]
    ) -> Iterator[tuple[str, FileEntry]]:
        for batch in batched(paths, _PATHS_PER_CALL):
            names = ["/".join(parts) for parts in batch]
            options = ("ls-tree", "-z", "--full-tree", commit, "--")
            for field in self._git.iter_fields(*options, *names):
                head, _, path = field.partition(b"\t")
                mode, _, blob = head.decode("ascii").split(" ")
                yield mode, FileEntry(_decode_path(path), blob)


class ObjectReader:
    """Reads file contents from one `git cat-file` process."""

    def __init__(self, requests: IO[bytes], responses: IO[bytes]) -> None:
        self._requests = requests
        self._responses = responses

    def size(self, name: str) -> int | None:
        """Return the size in bytes, or None where the object is not present.

        Raises:
            TemporarilyUnavailableError: the local copy is damaged.
        """
        header = self._request(f"info {name}")
        return None if header[-1] == "missing" else int(header[-1])

    def read(self, name: str) -> bytes:
        """Return the content of an object that is present.

        Raises:
            TemporarilyUnavailableError: the local copy is damaged.
        """
        size = int(self._request(f"contents {name}")[-1])
        data = self._responses.read(size + 1)
        if len(data) != size + 1:
            raise TemporarilyUnavailableError(_DAMAGED, RETRY_AFTER)
        return data[:-1]

    def _request(self, command: str) -> list[str]:
        try:
            self._requests.write(f"{command}\n".encode("ascii"))
            self._requests.flush()
        except BrokenPipeError as error:
            raise TemporarilyUnavailableError(_DAMAGED, RETRY_AFTER) from error
        header = self._responses.readline().decode("ascii", "replace").split()
        if not header:
            raise TemporarilyUnavailableError(_DAMAGED, RETRY_AFTER)
        return header


class CommitHistory:
    """The last change of each path, from one pass over the log.

    It is kept in SQLite, so that memory does not grow with the repository.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def load(
        self, git: Git, commit: str, since: str | None, paths: Sequence[PathParts] = ()
    ) -> None:
        """Replace what is held by the log from `since` up to `commit`, limited to `paths` if given.

        A merge counts as a change of a path only where it differs from all its parents.
        """
        mark = secrets.token_hex(16)
        form = f"--format={mark}%ct%x1f%an <%ae>%x1f{_CO_AUTHORS}"
        commits = [commit, *([f"^{since}"] if since else [])]
        limits = ["--full-history", "--", *("/".join(parts) for parts in paths)] if paths else []
        options = ("-z", "-c", "--name-only", "--no-renames", "--encoding=UTF-8", form)
        fields = git.iter_fields("log", *options, *commits, *limits)
        self._connection.execute("DELETE FROM changes")
        # The log is newest first, so the first row of a path is its last change.
        self._connection.executemany(
            "INSERT OR IGNORE INTO changes VALUES (?, ?)", _parse_log(fields, mark)
        )

    def last_changes(self, paths: Sequence[PathParts]) -> dict[PathParts, LastChange]:
        """Return the last change of each path; paths that the log does not name are left out."""
        found = {}
        for batch in batched(paths, _PATHS_PER_QUERY):
            by_path = {_encode_path(parts): parts for parts in batch}
            marks = ",".join("?" * len(by_path))
            query = f"SELECT path, header FROM changes WHERE path IN ({marks})"
            for path, header in self._connection.execute(query, list(by_path)):
                found[by_path[path]] = _parse_header(header)
        return found


@contextmanager
def open_objects(git: Git) -> Iterator[ObjectReader]:
    with git.open_pipes("cat-file", "--batch-command") as (requests, responses):
        yield ObjectReader(requests, responses)


@contextmanager
def open_history(file: Path) -> Iterator[CommitHistory]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("DROP TABLE IF EXISTS changes")
        connection.execute(
            "CREATE TABLE changes (path BLOB PRIMARY KEY, header TEXT) WITHOUT ROWID"
        )
        connection.execute("BEGIN")
        yield CommitHistory(connection)


def _parse_log(fields: Iterator[bytes], mark: str) -> Iterator[tuple[bytes, str]]:
    """Yield each path with the header of the commit that changed it.

    git writes the header, NUL, a line break, then the paths with a NUL each; for merges one more
    empty field, and no paths for a commit that changes nothing.
    """
    prefix, header, is_first = mark.encode("ascii"), "", False
    for field in fields:
        if field.startswith(prefix):
            header, is_first = field[len(prefix) :].decode("utf-8", "replace"), True
        elif field:
            yield (field.removeprefix(b"\n") if is_first else field), header
            is_first = False


def _parse_header(header: str) -> LastChange:
    seconds, *authors = header.split(_SEPARATOR)
    return LastChange(_parse_time(seconds), parse_people(authors))


def _parse_time(seconds: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _decode_path(path: bytes) -> PathParts:
    return tuple(path.decode("utf-8", "surrogateescape").split("/"))


def _encode_path(parts: PathParts) -> bytes:
    return "/".join(parts).encode("utf-8", "surrogateescape")
