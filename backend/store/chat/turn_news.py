"""Says over PostgreSQL which turn or research run has more to read, with the transaction that stores it.

A notification holds an id and nothing else: who follows reads what is stored, by the rights that it has then. SQLite has none.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, text

CHANNEL = "quarry_turns"
_SEND = text("SELECT pg_notify(:channel, id) FROM unnest(CAST(:ids AS text[])) AS id")


def send_news(connection: Connection, followed_ids: Iterable[int | str]) -> None:
    """Tell all who listen, once the transaction is committed: ids of answers, or of research runs."""
    ids = list(map(str, followed_ids))
    if ids and connection.dialect.name == "postgresql":
        connection.execute(_SEND, {"channel": CHANNEL, "ids": ids})


def read_id(payload: str) -> int | str:
    """Return the id that a notification holds. That of an answer is a number; a research run's has 22 characters, never all digits."""
    return int(payload) if payload.isdecimal() else payload
