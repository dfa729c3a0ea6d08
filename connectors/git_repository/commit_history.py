"""Who last touched each file, and when: from one pass over the log, kept on disk."""

import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from connectors.batched import portions
from connectors.document import Person
from connectors.extraction.result import people
from connectors.files.paths import Parts
from connectors.git_repository.git_command import Git

_FIELD = "\x1f"
_ASKED = 500
_CO_AUTHORS = "%(trailers:key=Co-authored-by,valueonly=true,unfold=true,separator=%x1f)"


@dataclass(frozen=True, slots=True)
class Touch:
    at: datetime | None
    """When the commit was made; none where it says a time that cannot be."""
    authors: tuple[Person, ...]


class History:
    """The last touch of each path. Only this file of SQLite grows with the repository."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read(self, git: Git, commit: str, since: str | None, paths: Sequence[Parts] = ()) -> None:
        """Take in the log up to a commit, in place of what was read before: what came after `since`,
        and touched `paths` where they are named.

        A path counts as touched by a merge where the merge differs from all that it joins.
        """
        mark = secrets.token_hex(16)
        form = f"--format={mark}%ct%x1f%an <%ae>%x1f{_CO_AUTHORS}"
        spans = [commit, *([f"^{since}"] if since else [])]
        named = ["--full-history", "--", *("/".join(parts) for parts in paths)] if paths else []
        options = ("-z", "-c", "--name-only", "--no-renames", "--encoding=UTF-8", form)
        told = git.fields("log", *options, *spans, *named)
        self._connection.execute("DELETE FROM touches")
        # Newest first: of a path's touches the first one stays.
        self._connection.executemany(
            "INSERT OR IGNORE INTO touches VALUES (?, ?)", _touches(told, mark)
        )

    def of(self, wanted: Sequence[Parts]) -> dict[Parts, Touch]:
        """Paths that the log does not name are left out."""
        found = {}
        for some in portions(wanted, _ASKED):
            paths = {_path(parts): parts for parts in some}
            marks = ",".join("?" * len(paths))
            query = f"SELECT path, said FROM touches WHERE path IN ({marks})"
            for path, said in self._connection.execute(query, list(paths)):
                found[paths[path]] = _touch(said)
        return found


@contextmanager
def history(file: Path) -> Iterator[History]:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("DROP TABLE IF EXISTS touches")
        connection.execute("CREATE TABLE touches (path BLOB PRIMARY KEY, said TEXT) WITHOUT ROWID")
        connection.execute("BEGIN")
        yield History(connection)


def _touches(told: Iterator[bytes], mark: str) -> Iterator[tuple[bytes, str]]:
    """Paths with what the commit says that touched them.

    git writes: the commit, NUL, a line break, its paths with a NUL each; of merges an empty field
    more, and none of these for a commit that touches nothing.
    """
    head, said, first = mark.encode("ascii"), "", False
    for part in told:
        if part.startswith(head):
            said, first = part[len(head) :].decode("utf-8", "replace"), True
        elif part:
            yield (part.removeprefix(b"\n") if first else part), said
            first = False


def _touch(said: str) -> Touch:
    seconds, *authors = said.split(_FIELD)
    return Touch(_moment(seconds), people(authors))


def _moment(seconds: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _path(parts: Parts) -> bytes:
    return "/".join(parts).encode("utf-8", "surrogateescape")
