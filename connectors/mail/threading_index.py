"""Which messages belong together: conversations, from the headers of a whole mailbox.

Messages are joined by what they state: each with all that it references, in the manner of Jamie
Zawinski's threading (https://www.jwz.org/doc/threading.html), of which only the sets are needed
here, not the trees; so a circle or a missing parent harms nothing. A reply whose parents are all
missing joins the newest earlier message of its subject, if there is one within two weeks.

The headers lie in a private SQLite file on disk, which goes away with its connection; memory holds
eight bytes for each message and each id that one references.
"""

import json
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connectors.closing import Closing
from connectors.mail.headers import Envelope

_NEAR = 14 * 24 * 3600
"""Seconds between a message and a reply to it that does not say so but by its subject."""
_CACHE_KIBIBYTES = 4096
_ROWS = 500

_TABLES = f"""
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = FILE;
PRAGMA cache_size = -{_CACHE_KIBIBYTES};
CREATE TABLE node (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE answers (message INTEGER, node INTEGER, PRIMARY KEY (message, node)) WITHOUT ROWID;
CREATE TABLE message (
    id INTEGER PRIMARY KEY, key TEXT, folder TEXT, number INTEGER, size INTEGER, refs TEXT,
    said TEXT, subject TEXT, author TEXT, sent INTEGER, fault TEXT, topic TEXT, root TEXT, may_answer INTEGER,
    thread INTEGER
);
"""

_BY_TOPIC = "CREATE INDEX by_topic ON message (topic, sent, key)"
_BY_THREAD = "CREATE INDEX by_thread ON message (thread, sent, key)"

_LOST_REPLIES = """
SELECT reply.id, (
    SELECT earlier.id FROM message AS earlier
    WHERE earlier.topic = reply.topic AND earlier.sent BETWEEN reply.sent - ? AND reply.sent
      AND earlier.id <> reply.id
    ORDER BY earlier.sent DESC, earlier.key LIMIT 1
)
FROM message AS reply
WHERE reply.may_answer AND reply.topic <> ''
  AND NOT EXISTS (
    SELECT 1 FROM answers JOIN message AS parent ON parent.id = answers.node
    WHERE answers.message = reply.id
  )
"""

_THREADS = """
CREATE TABLE thread AS
SELECT thread AS id, max(sent) AS latest, (
    SELECT root FROM message AS first WHERE first.thread = message.thread
    ORDER BY sent, key LIMIT 1
) AS name
FROM message GROUP BY thread;
CREATE UNIQUE INDEX by_time ON thread (latest DESC, name);
CREATE UNIQUE INDEX by_name ON thread (name);
"""

_MESSAGES = """
SELECT folder, number, size, key, refs, said, subject, author, sent, fault
FROM message WHERE thread = ? ORDER BY sent, key
"""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a conversation stands among all: the newest first, then by name."""

    latest: int
    name: str


NEWEST = Position(2**62, "")
"""Before all conversations."""


@dataclass(frozen=True, slots=True)
class Thread:
    name: str
    """The key of the message that began it, whether or not that is there."""
    messages: tuple[Envelope, ...]
    """At least one; in the order in which they were sent."""

    @property
    def position(self) -> Position:
        return Position(self.messages[-1].sent, self.name)

    @property
    def other_names(self) -> tuple[str, ...]:
        """Those it may have had before, of the parts that it has grown from."""
        roots = dict.fromkeys(one for message in self.messages for one in _roots(message))
        return tuple(one for one in roots if one != self.name)


def _root(message: Envelope) -> str:
    return message.thread or next(iter(message.references), message.key)


def _roots(message: Envelope) -> tuple[str, ...]:
    return (_root(message), message.key)


class ThreadIndex(Closing):
    """First `add` every message, then `join` once, then read `threads`; to be closed."""

    def __init__(self) -> None:
        # An empty name is a file of SQLite's own in the temporary folder, nobody else's to open.
        # Generators that read it may be ended by another thread than the one that began them.
        self._rows = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._rows.executescript(_TABLES)
        self._above = array("q", [0])

    def close(self) -> None:
        self._rows.close()

    def add(self, message: Envelope) -> None:
        """Take a message; one whose key is already there is a copy, and left out."""
        own = self._node(message.key)
        added = self._rows.execute(
            "INSERT OR IGNORE INTO message VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,NULL)",
            (
                own,
                message.key,
                message.folder,
                message.number,
                message.size,
                json.dumps(message.references),
                message.thread,
                message.subject,
                message.author,
                message.sent,
                message.fault,
                message.topic,
                _root(message),
                not message.thread and (bool(message.references) or message.says_reply),
            ),
        )
        if added.rowcount:
            joined = (message.thread,) if message.thread else message.references
            self._answer(own, [self._node(key) for key in joined])

    def join(self) -> None:
        """Make conversations of all that was added."""
        self._rows.execute(_BY_TOPIC)
        for reply, earlier in self._rows.execute(_LOST_REPLIES, (_NEAR,)):
            if earlier is not None:
                self._unite(reply, earlier)
        for ids in self._pages():
            self._rows.executemany(
                "UPDATE message SET thread = ? WHERE id = ?", [(self._top(one), one) for one in ids]
            )
        self._rows.execute(_BY_THREAD)
        self._rows.executescript(_THREADS)

    def threads(self, after: Position = NEWEST) -> Iterator[Thread]:
        """Those that come after that position."""
        found = self._rows.execute(
            "SELECT id, name FROM thread WHERE latest <= ? AND (latest < ? OR name > ?)"
            " ORDER BY latest DESC, name",
            (after.latest, after.latest, after.name),
        )
        for thread, name in found:
            yield Thread(name, self._messages(thread))

    def named(self, name: str) -> Thread | None:
        """The conversation of that name."""
        row = self._rows.execute("SELECT id FROM thread WHERE name = ?", (name,)).fetchone()
        return None if row is None else Thread(name, self._messages(row[0]))

    def _messages(self, thread: int) -> tuple[Envelope, ...]:
        return tuple(
            Envelope(
                folder=folder,
                number=number,
                size=size,
                key=key,
                references=tuple(json.loads(references)),
                thread=said,
                subject=subject,
                author=author,
                sent=sent,
                fault=fault,
            )
            for folder, number, size, key, references, said, subject, author, sent, fault in (
                self._rows.execute(_MESSAGES, (thread,))
            )
        )

    def _pages(self) -> Iterator[list[int]]:
        last = 0
        while True:
            page = self._rows.execute(
                "SELECT id FROM message WHERE id > ? ORDER BY id LIMIT ?", (last, _ROWS)
            ).fetchall()
            if not page:
                return
            last = page[-1][0]
            yield [row[0] for row in page]

    def _node(self, key: str) -> int:
        row = self._rows.execute("SELECT id FROM node WHERE key = ?", (key,)).fetchone()
        if row is not None:
            return int(row[0])
        node = len(self._above)
        self._rows.execute("INSERT INTO node VALUES (?, ?)", (node, key))
        self._above.append(node)
        return node

    def _answer(self, own: int, nodes: Sequence[int]) -> None:
        for node in nodes:
            self._unite(own, node)
        self._rows.executemany(
            "INSERT OR IGNORE INTO answers VALUES (?, ?)", [(own, node) for node in nodes]
        )

    def _unite(self, one: int, other: int) -> None:
        first, second = sorted((self._top(one), self._top(other)))
        self._above[second] = first

    def _top(self, node: int) -> int:
        """Of its set; the way there is halved each time it is gone."""
        above = self._above
        while above[node] != node:
            above[node] = above[above[node]]
            node = above[node]
        return node
