"""Which addresses a walk has still to ask, and which it knows already: on disk, nearest first."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from connectors.closing import Closing

_TABLE = """
create table page (
    number integer primary key, address text not null unique, depth integer not null,
    told text, is_done integer not null default 0, is_chosen integer not null default 0
);
create index waiting on page (depth, number) where not is_done;
"""
_ADD = "insert or ignore into page (address, depth, told) values (?, ?, ?)"
_NEXT = "select address, depth, told from page where not is_done order by depth, number limit ?"


@dataclass(frozen=True, slots=True)
class Waiting:
    """An address to be asked."""

    address: str
    depth: int
    """Links from a start page to it."""
    told: str | None = None
    """When it was changed last, as a sitemap tells."""


class Frontier(Closing):
    """Takes up to so many addresses; to be closed, and its file goes away with it."""

    def __init__(self, most: int) -> None:
        # An empty name is a file of SQLite's own that nobody else sees.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(f"pragma synchronous = off; {_TABLE}")
        self._most = most
        self._count = 0
        self.left_out: str | None = None
        """The first address that was too many."""

    def close(self) -> None:
        self._database.close()

    def add(self, pages: Iterable[Waiting]) -> None:
        """Those that are new."""
        self._database.execute("begin")
        for page in pages:
            if self._count < self._most:
                row = (page.address, page.depth, page.told)
                self._count += self._database.execute(_ADD, row).rowcount
            elif self.left_out is None and not self._knows(page.address):
                self.left_out = page.address
        self._database.execute("commit")

    def choose(self, address: str, depth: int) -> None:
        """Another page names it as the address of what it says: it is read as it is."""
        self.add([Waiting(address, depth)])
        self._database.execute("update page set is_chosen = 1 where address = ?", (address,))

    def is_chosen(self, address: str) -> bool:
        found = self._database.execute(
            "select 1 from page where address = ? and is_chosen", (address,)
        )
        return found.fetchone() is not None

    def claim(self, address: str) -> bool:
        """Whether it is to be read now: once only."""
        self._database.execute(_ADD, (address, 0, None))
        claimed = self._database.execute(
            "update page set is_done = 1 where address = ? and not is_done", (address,)
        )
        return claimed.rowcount == 1

    def next(self, most: int) -> list[Waiting]:
        """The nearest, in the order in which they were found."""
        return [Waiting(*row) for row in self._database.execute(_NEXT, (most,)).fetchall()]

    def _knows(self, address: str) -> bool:
        found = self._database.execute("select 1 from page where address = ?", (address,))
        return found.fetchone() is not None
