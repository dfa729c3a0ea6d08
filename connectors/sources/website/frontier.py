"""The crawl frontier: URLs that are to be visited, or were visited; kept on disk."""

import base64
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from connectors.closing import Closing

_SCHEMA = """
create table page (
    number integer primary key, url text not null unique, depth integer not null,
    last_modified text, is_done integer not null default 0, is_canonical integer not null default 0
);
create index pending on page (depth, number) where not is_done;
"""
_ADD = "insert or ignore into page (url, depth, last_modified) values (?, ?, ?)"
_NEXT = (
    "select url, depth, last_modified from page where not is_done order by depth, number limit ?"
)
_ROWS = "select url, depth, last_modified, is_done, is_canonical from page order by number"
_RESTORE = (
    "insert into page (url, depth, last_modified, is_done, is_canonical) values (?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class PendingUrl:
    """A URL to be visited."""

    url: str
    depth: int
    """The number of links from a start page."""
    last_modified: str | None = None
    """As a sitemap states it."""


class Frontier(Closing):
    """Holds up to `max_urls` URLs."""

    def __init__(self, max_urls: int) -> None:
        # An empty name makes SQLite create a private temporary file.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(f"pragma synchronous = off; {_SCHEMA}")
        self._max_urls = max_urls
        self.count = 0
        """Of the URLs that were added."""
        self.first_skipped: str | None = None
        """The first URL beyond the limit."""

    def close(self) -> None:
        self._database.close()

    def add(self, pages: Iterable[PendingUrl]) -> None:
        """Add URLs; those that are known already are ignored."""
        self._database.execute("begin")
        for page in pages:
            if self.count < self._max_urls:
                row = (page.url, page.depth, page.last_modified)
                self.count += self._database.execute(_ADD, row).rowcount
            elif self.first_skipped is None and not self._contains(page.url):
                self.first_skipped = page.url
        self._database.execute("commit")

    def add_canonical(self, url: str, depth: int) -> None:
        """Add a URL that a page names as its canonical one; its own canonical link is then ignored."""
        self.add([PendingUrl(url, depth)])
        self._database.execute("update page set is_canonical = 1 where url = ?", (url,))

    def is_canonical(self, url: str) -> bool:
        found = self._database.execute("select 1 from page where url = ? and is_canonical", (url,))
        return found.fetchone() is not None

    def claim(self, url: str) -> bool:
        """Mark a URL as visited; return whether it was not visited before."""
        self._database.execute(_ADD, (url, 0, None))
        claimed = self._database.execute(
            "update page set is_done = 1 where url = ? and not is_done", (url,)
        )
        return claimed.rowcount == 1

    def release(self, url: str) -> None:
        """Mark a URL as not visited, because its visit failed."""
        self._database.execute("update page set is_done = 0 where url = ?", (url,))

    def dump(self) -> str:
        """Return the whole frontier as a text, in about ten bytes a URL."""
        compressor = zlib.compressobj()
        packed = bytearray()
        for line in self._lines():
            packed += compressor.compress(line.encode())
        return base64.b85encode(packed + compressor.flush()).decode()

    def restore(self, text: str) -> bool:
        """Fill an empty frontier with what `dump` returned, and return whether the text could be read."""
        try:
            head, *rows = _parse_lines(text)
            self._database.execute("begin")
            self._database.executemany(_RESTORE, rows)
        except (ValueError, TypeError, zlib.error, sqlite3.Error):
            if self._database.in_transaction:
                self._database.execute("rollback")
            return False
        self._database.execute("commit")
        self.count, self.first_skipped = head
        return True

    def _lines(self) -> Iterator[str]:
        yield json.dumps([self.count, self.first_skipped])
        for row in self._database.execute(_ROWS):
            yield f"\n{json.dumps(row)}"

    def next_batch(self, size: int) -> list[PendingUrl]:
        """Return the next URLs, by depth, then in the order in which they were added."""
        return [PendingUrl(*row) for row in self._database.execute(_NEXT, (size,)).fetchall()]

    def _contains(self, url: str) -> bool:
        found = self._database.execute("select 1 from page where url = ?", (url,))
        return found.fetchone() is not None


def _parse_lines(text: str) -> list[Any]:
    """Read what `Frontier.dump` returns. Raises ValueError, zlib.error: it is something else."""
    found = [json.loads(line) for line in zlib.decompress(base64.b85decode(text)).splitlines()]
    match found:
        case [[int(), str() | None], *rows] if all(_is_row(row) for row in rows):
            return found
        case _:
            raise ValueError("not a frontier")


def _is_row(row: object) -> bool:
    match row:
        case [str(), int(), str() | None, 0 | 1, 0 | 1]:
            return True
        case _:
            return False
