"""The messages of one channel of an export, put in order on disk.

An export has a file a day, and the answers to a message stand in the files of their own days.
"""

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from connectors.closing import Closing
from connectors.sources.slack.models import Message, order
from connectors.sources.slack.workspace import Thread

_TABLE = """
create table message (
    seconds integer, micros integer, ts text, thread text, raw text, primary key (thread, ts)
) without rowid;
create index by_moment on message (seconds, micros) where thread = ts;
"""
_BEGINNING = """
select raw from message
where thread = ts and (seconds, micros) >= (?, ?) and (seconds, micros) <= (?, ?)
order by seconds desc, micros desc, ts limit ?
"""
_ANSWERS = """
select ts, count(*) over () from message where thread = ? and ts != thread
order by seconds desc, micros desc limit 1
"""
_THREAD = "select raw from message where thread = ? order by ts != thread, seconds, micros"
_LATEST = (2**62, 0)


class Spool(Closing):
    """To be closed; its file goes away with it."""

    def __init__(self) -> None:
        # An empty name is a file of SQLite's own that nobody else sees.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(_TABLE)

    def close(self) -> None:
        self._database.close()

    def fill(self, messages: Iterable[Message]) -> None:
        """In place of what it held before. A message that comes twice counts once."""
        self._database.execute("begin")
        self._database.execute("delete from message")
        self._database.executemany(
            "insert or replace into message values (?, ?, ?, ?, ?)", map(_row, messages)
        )
        self._database.execute("commit")

    def roots(self, oldest: str, latest: str, most: int) -> list[Message]:
        """Those that begin a thread between the two, both included, newest first; they know of their
        answers what Slack tells of them."""
        until = order(latest) if latest else _LATEST
        found = self._database.execute(_BEGINNING, (*order(oldest), *until, most)).fetchall()
        return [self._known(json.loads(raw)) for (raw,) in found]

    def thread(self, root: Message) -> Thread:
        rows = self._database.execute(_THREAD, (root.ts,))
        first, *answers = (Message.of(json.loads(raw)) for (raw,) in rows)
        return (self._known(first.raw), *answers)

    def _known(self, raw: Any) -> Message:
        message = Message.of(raw)
        answered = self._database.execute(_ANSWERS, (message.ts,)).fetchone()
        latest, count = answered or (None, 0)
        return Message.of({**raw, "reply_count": count, "latest_reply": latest})


def _row(message: Message) -> tuple[int, int, str, str, str]:
    return (*order(message.ts), message.ts, message.thread_ts, json.dumps(message.raw))
