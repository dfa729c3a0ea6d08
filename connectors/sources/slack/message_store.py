"""A temporary store that orders the messages of one channel of an export.

An export has a file for each day, and the replies to a message are in the files of their own days.
"""

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from connectors.closing import Closing
from connectors.sources.slack.models import Message, parse_ts
from connectors.sources.slack.workspace import Thread

_TABLE = """
create table message (
    seconds integer, micros integer, ts text, thread text, raw text, primary key (thread, ts)
) without rowid;
create index by_time on message (seconds, micros) where thread = ts;
"""
_SELECT_ROOTS = """
select raw from message
where thread = ts and (seconds, micros) >= (?, ?) and (seconds, micros) <= (?, ?)
order by seconds desc, micros desc, ts limit ?
"""
_SELECT_LAST_REPLY = """
select ts, count(*) over () from message where thread = ? and ts != thread
order by seconds desc, micros desc limit 1
"""
_SELECT_THREAD = "select raw from message where thread = ? order by ts != thread, seconds, micros"
_END_OF_TIME = (2**62, 0)


class MessageStore(Closing):
    """To be closed; its file is deleted then."""

    def __init__(self) -> None:
        # With an empty name, SQLite uses a private temporary file.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(_TABLE)

    def close(self) -> None:
        self._database.close()

    def replace_all(self, messages: Iterable[Message]) -> None:
        """Store these messages instead of the previous ones. A message that comes twice counts once."""
        self._database.execute("begin")
        self._database.execute("delete from message")
        self._database.executemany(
            "insert or replace into message values (?, ?, ?, ?, ?)", map(_to_row, messages)
        )
        self._database.execute("commit")

    def get_roots(self, oldest: str, latest: str, limit: int) -> list[Message]:
        """Return messages that begin a thread between two times, both included, newest first.

        They have the number of replies and the last reply, as in responses of the API.
        """
        until = parse_ts(latest) if latest else _END_OF_TIME
        rows = self._database.execute(_SELECT_ROOTS, (*parse_ts(oldest), *until, limit)).fetchall()
        return [self._with_replies(json.loads(raw)) for (raw,) in rows]

    def get_thread(self, root: Message) -> Thread:
        rows = self._database.execute(_SELECT_THREAD, (root.ts,))
        first, *replies = (Message.parse(json.loads(raw)) for (raw,) in rows)
        return (self._with_replies(first.raw), *replies)

    def _with_replies(self, raw: Any) -> Message:
        message = Message.parse(raw)
        row = self._database.execute(_SELECT_LAST_REPLY, (message.ts,)).fetchone()
        latest, count = row or (None, 0)
        return Message.parse({**raw, "reply_count": count, "latest_reply": latest})


def _to_row(message: Message) -> tuple[int, int, str, str, str]:
    return (*parse_ts(message.ts), message.ts, message.thread_ts, json.dumps(message.raw))
