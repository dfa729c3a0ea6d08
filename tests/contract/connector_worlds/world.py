"""A source in a world of its own, as the contract suite of connectors wants it.

A world is a class: it derives from `World`, and from each power below that its source really has.
A test of a power is collected for the worlds that derive from it; for others it does not exist.

To join: write `tests/contract/connector_worlds/NAME.py` with such a class, whose server (if it has
one) is started in `__init__` on a free port of loopback and ended in `close`, and add the class to
`WORLDS` in `tests/contract/connector_worlds/worlds.py`.

The suite distinguishes items by their texts alone: make each from `title`, `text` and `edited_text`.
Every test gets a new world, so making one should take well under a second.
"""

import json
import re
from abc import ABC, abstractmethod
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from connectors.access import Access
from connectors.connector import Connector
from tests.support.soak import scaled

ITEMS = scaled(60, 450, "connectors")
"""Numbered from 0; each is one document, and nothing else in the world is one."""
UNREADABLE = 7
"""The number of the item that cannot be read until it is edited."""


def title(number: int) -> str:
    """The title of an item's document, or a part of it."""
    return f"Item {number}"


def text(number: int) -> str:
    """What an item says, somewhere in its sections."""
    return f"The text of item {number}."


def edited_text(number: int) -> str:
    """What it says instead once it was edited."""
    return f"The edited text of item {number}."


def number_of(said: str) -> int:
    """The number of the item that a title or a name speaks of: that after `Item`, else the last (`項目
    007.md`)."""
    return int(
        re.findall(r"Item (\d+)", said)[0] if "Item " in said else re.findall(r"\d+", said)[-1]
    )


class World(ABC):
    """A source with `ITEMS` items, of which number `UNREADABLE` cannot be read.

    What makes it unreadable is the world's choice: an empty file, an answer 500 for this one item,
    a body that no reader understands. `number_of` its name, `Unreadable.item`, is 7.
    """

    name: ClassVar[str]
    """In the ids of the tests."""

    def __init__(self, root: Path) -> None:
        """`root` is an empty folder for what the world keeps on disk."""
        self.root = root

    @abstractmethod
    def connect(self) -> Connector:
        """A new connector, as a new process makes it: it remembers nothing of an earlier one."""

    @abstractmethod
    def readers(self, number: int) -> Access:
        """Who may read the item. Where the source can, not the same for all items."""

    @abstractmethod
    def edit(self, number: int) -> None:
        """Give the item `edited_text`, as a person would at the source; its title stays. Editing the
        unreadable item mends it."""

    @abstractmethod
    def remove(self, number: int) -> None:
        """Remove the item, as a person would."""

    def close(self) -> None:
        """End what was started: servers, threads, open files."""
        return


class IdOnMove(StrEnum):
    KEPT = "kept"
    """The source has ids of its own."""
    CHANGED = "changed"
    """The id is the path."""


class Moves(ABC):
    """Its items can be renamed or moved to another place."""

    id_on_move: ClassVar[IdOnMove]

    @abstractmethod
    def move(self, number: int) -> None:
        """Move the item as a person would, to where the same people may read it. Its text stays, and
        its title where the place does not make the title; a new title holds `title(number)` too.
        """


SOURCE_ID = 1
"""Of the source that a world is; it is in the tokens of its groups."""
ANN, BO, CY = (f"user:{name}@example.com" for name in ("ann", "bo", "cy"))


class Grouped(ABC):
    """Its documents name groups or scopes, which have members."""

    @abstractmethod
    def people(self, number: int) -> frozenset[str]:
        """Who of ANN, BO and CY may read the item; PUBLIC if everybody may. Not the same for all items."""

    @abstractmethod
    def join(self) -> None:
        """Let CY read the items that ANN may read, as a person would at the source: by a group, not item by item."""

    @abstractmethod
    def leave(self) -> None:
        """Take from ANN what not everybody may read, likewise."""


class RuleReaders(Grouped):
    """Its owner writes in an `access.yaml` who may read some of its items; the others everybody may."""

    rule_readers: tuple[str, ...] = (ANN, BO)

    @abstractmethod
    def write_rules(self) -> None:
        """Save the rules as they are now."""

    def join(self) -> None:
        self.rule_readers = (*self.rule_readers, CY)
        self.write_rules()

    def leave(self) -> None:
        self.rule_readers = tuple(one for one in self.rule_readers if one != ANN)
        self.write_rules()

    def format_rules(self, pattern: str) -> str:
        rules = [(pattern, self.rule_readers), ("**", ["public"])]
        # JSON is YAML.
        return json.dumps({"rules": [{"match": one, "readers": of} for one, of in rules]})


class Fails(ABC):
    """Any of its items can break by itself while the others answer."""

    @abstractmethod
    def fail(self, number: int) -> None:
        """From now on the item cannot be read, in the way in which that happens at the source (500
        for its address, a body cut short). It is listed all the same."""

    @abstractmethod
    def heal(self, number: int) -> None:
        """It can be read again, and was not edited."""


class Skews(ABC):
    """It stamps items with a clock of its own."""

    @abstractmethod
    def skew(self, by: timedelta) -> None:
        """From now on the source's clock (its stamps on edits, its Date headers) is that far ahead of
        this machine's; behind it where negative. Before the first call both agree, and no item is
        stamped later than now."""


class RollsOut:
    """It shows its latest items only: what is removed has rolled out, and nobody has deleted it."""


class Limits(ABC):
    """It refuses those who ask too much."""

    wait: ClassVar[timedelta]
    """The wait that the service asks for, in its own way: longer than a client would wait within a run."""

    @abstractmethod
    def limit(self, after: int) -> None:
        """Answer `after` more requests as ever; then every request with the rate limit of the
        service, status, headers and body as it documents them, until `relent`."""

    @abstractmethod
    def relent(self) -> None:
        """Answer as ever."""


class Expires(ABC):
    """Its credential can end."""

    mending: ClassVar[str]
    """A pattern (re.search) of what the message must ask the owner to do: where a new credential is made."""

    @abstractmethod
    def expire(self, after: int) -> None:
        """Answer `after` more requests as ever; then refuse the credential as the service does."""

    @abstractmethod
    def renew(self) -> None:
        """Take the credential again."""


class Garbles(ABC):
    """Its answers can come malformed: a proxy's page, half a body, another shape."""

    garblings: ClassVar[tuple[str, ...]]
    """Names of the ways, for the ids of the tests: `html`, `cut`, `another shape`, `empty`."""

    @abstractmethod
    def garble(self, how: str, after: int) -> None:
        """Answer `after` more requests as ever; then all of them with 200 and a malformed body."""

    @abstractmethod
    def mend(self) -> None:
        """Answer as ever."""


class Shift(StrEnum):
    REPEAT = "repeat"
    """The first items of every page were already the last of the page before."""
    REMOVED = "removed"
    """Once the first page was answered, some items of it are removed, so that in a list that counts
    its pages the rest moves up. Where pages have cursors, nothing moves."""
    ADDED = "added"
    """Once the first page was answered, items are added before it, so that the rest moves down."""
    SHORT = "short"
    """Pages are shorter than asked for, one of them is empty, and there is a next one all the same."""


class Shifts(ABC):
    """It gives its items in pages, and the pages can move while one goes through them."""

    shifts: ClassVar[tuple[Shift, ...]]
    """Those that the service's way of paging allows."""

    @abstractmethod
    def shift(self, how: Shift) -> frozenset[int]:
        """Do so from now on. Gives the numbers of the items that will go away or come (numbers from
        `ITEMS` on) meanwhile: nothing is expected of these."""


class Crowds(ABC):
    """It can be had with very many items, cheaply."""

    @abstractmethod
    def crowd(self, items: int) -> Connector:
        """The connector of a source with that many small items, made here or by the server as it is
        asked: 100,000 within seconds, and not in the memory of this process. They may be alike."""
