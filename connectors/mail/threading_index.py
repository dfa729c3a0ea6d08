"""Grouping the messages of a mailbox into conversations by their headers.

Each message is joined with all messages that it references, as in Jamie Zawinski's threading
(https://www.jwz.org/doc/threading.html). Only the sets are needed here, not the trees, so a cycle or a
missing parent does no harm. A reply whose parents are all missing joins the newest earlier message of the
same subject, if there is one within two weeks.

The headers are kept in a temporary SQLite file, which is removed with its connection; memory holds eight
bytes for each message and each referenced id.
"""

import json
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connectors.closing import Closing
from connectors.mail.headers import Envelope

_SUBJECT_WINDOW = 14 * 24 * 3600
"""Seconds within which a reply is matched by its subject."""
_CACHE_KIBIBYTES = 4096
_ROWS_PER_UPDATE = 500

_CREATE_TABLES = f"""
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA temp_store = FILE;
PRAGMA cache_size = -{_CACHE_KIBIBYTES};
CREATE TABLE node (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE reference (message INTEGER, node INTEGER, PRIMARY KEY (message, node)) WITHOUT ROWID;
CREATE TABLE message (
    id INTEGER PRIMARY KEY, key TEXT, folder TEXT, number INTEGER, size INTEGER, refs TEXT,
    server_thread TEXT, subject TEXT, author TEXT, sent INTEGER, fault TEXT, base_subject TEXT, root TEXT,
    is_reply INTEGER, thread INTEGER
);
"""

_INDEX_BY_SUBJECT = "CREATE INDEX by_subject ON message (base_subject, sent, key)"
_INDEX_BY_THREAD = "CREATE INDEX by_thread ON message (thread, sent, key)"

_REPLIES_WITHOUT_PARENT = """
SELECT reply.id, (
    SELECT earlier.id FROM message AS earlier
    WHERE earlier.base_subject = reply.base_subject AND earlier.sent BETWEEN reply.sent - ? AND reply.sent
      AND earlier.id <> reply.id
    ORDER BY earlier.sent DESC, earlier.key LIMIT 1
)
FROM message AS reply
WHERE reply.is_reply AND reply.base_subject <> ''
  AND NOT EXISTS (
    SELECT 1 FROM reference JOIN message AS parent ON parent.id = reference.node
    WHERE reference.message = reply.id
  )
"""

_CREATE_THREADS = """
CREATE TABLE thread AS
SELECT thread AS id, max(sent) AS latest, (
    SELECT root FROM message AS first WHERE first.thread = message.thread
    ORDER BY sent, key LIMIT 1
) AS name
FROM message GROUP BY thread;
CREATE UNIQUE INDEX by_time ON thread (latest DESC, name);
CREATE UNIQUE INDEX by_name ON thread (name);
"""

_SELECT_MESSAGES = """
SELECT folder, number, size, key, refs, server_thread, subject, author, sent, fault
FROM message WHERE thread = ? ORDER BY sent, key
"""


@dataclass(frozen=True, slots=True)
class ThreadPosition:
    """The sort key of a conversation: newest first, then by name."""

    latest: int
    name: str


START = ThreadPosition(2**62, "")
"""Sorts before all conversations."""


@dataclass(frozen=True, slots=True)
class Thread:
    name: str
    """The key of its first message, even if that message is missing."""
    messages: tuple[Envelope, ...]
    """At least one; by the time they were sent."""

    @property
    def position(self) -> ThreadPosition:
        return ThreadPosition(self.messages[-1].sent, self.name)

    @property
    def former_names(self) -> tuple[str, ...]:
        """Names that it, or a conversation that is now part of it, may have had before."""
        roots = dict.fromkeys(one for message in self.messages for one in _roots(message))
        return tuple(one for one in roots if one != self.name)


def _root(message: Envelope) -> str:
    return message.thread or next(iter(message.references), message.key)


def _roots(message: Envelope) -> tuple[str, ...]:
    return (_root(message), message.key)


class ThreadIndex(Closing):
    """Call `add` for every message, then `build` once, then read `threads`."""

    def __init__(self) -> None:
        # An empty name makes SQLite create a private temporary file. A generator that reads it may be
        # closed by another thread than the one that started it, hence check_same_thread.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(_CREATE_TABLES)
        self._parents = array("q", [0])

    def close(self) -> None:
        self._database.close()

    def add(self, message: Envelope) -> None:
        """Add a message; a copy of one that was added is ignored."""
        own = self._node_id(message.key)
        added = self._database.execute(
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
                message.base_subject,
                _root(message),
                not message.thread and (bool(message.references) or message.is_reply),
            ),
        )
        if added.rowcount:
            related = (message.thread,) if message.thread else message.references
            self._add_references(own, [self._node_id(key) for key in related])

    def build(self) -> None:
        """Group the messages that were added into conversations."""
        self._database.execute(_INDEX_BY_SUBJECT)
        for reply, earlier in self._database.execute(_REPLIES_WITHOUT_PARENT, (_SUBJECT_WINDOW,)):
            if earlier is not None:
                self._unite(reply, earlier)
        for ids in self._message_ids():
            self._database.executemany(
                "UPDATE message SET thread = ? WHERE id = ?",
                [(self._find_set(one), one) for one in ids],
            )
        self._database.execute(_INDEX_BY_THREAD)
        self._database.executescript(_CREATE_THREADS)

    def threads(self, after: ThreadPosition = START) -> Iterator[Thread]:
        """Yield the conversations after a position."""
        found = self._database.execute(
            "SELECT id, name FROM thread WHERE latest <= ? AND (latest < ? OR name > ?)"
            " ORDER BY latest DESC, name",
            (after.latest, after.latest, after.name),
        )
        for thread, name in found:
            yield Thread(name, self._messages(thread))

    def count_threads(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM thread").fetchone()[0])

    def find(self, name: str) -> Thread | None:
        row = self._database.execute("SELECT id FROM thread WHERE name = ?", (name,)).fetchone()
        return None if row is None else Thread(name, self._messages(row[0]))

    def _messages(self, thread: int) -> tuple[Envelope, ...]:
        return tuple(
            Envelope(
                folder=folder,
                number=number,
                size=size,
                key=key,
                references=tuple(json.loads(references)),
                thread=server_thread,
                subject=subject,
                author=author,
                sent=sent,
                fault=fault,
            )
            for folder, number, size, key, references, server_thread, subject, author, sent, fault in (
                self._database.execute(_SELECT_MESSAGES, (thread,))
            )
        )

    def _message_ids(self) -> Iterator[list[int]]:
        last = 0
        while True:
            page = self._database.execute(
                "SELECT id FROM message WHERE id > ? ORDER BY id LIMIT ?", (last, _ROWS_PER_UPDATE)
            ).fetchall()
            if not page:
                return
            last = page[-1][0]
            yield [row[0] for row in page]

    def _node_id(self, key: str) -> int:
        row = self._database.execute("SELECT id FROM node WHERE key = ?", (key,)).fetchone()
        if row is not None:
            return int(row[0])
        node = len(self._parents)
        self._database.execute("INSERT INTO node VALUES (?, ?)", (node, key))
        self._parents.append(node)
        return node

    def _add_references(self, own: int, nodes: Sequence[int]) -> None:
        for node in nodes:
            self._unite(own, node)
        self._database.executemany(
            "INSERT OR IGNORE INTO reference VALUES (?, ?)", [(own, node) for node in nodes]
        )

    def _unite(self, one: int, other: int) -> None:
        first, second = sorted((self._find_set(one), self._find_set(other)))
        self._parents[second] = first

    def _find_set(self, node: int) -> int:
        """Return the representative of a node's set (union-find with path halving)."""
        parents = self._parents
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node
