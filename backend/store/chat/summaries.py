"""Summaries of older messages. A message stands at the end of one path only, so that branches share what they have in common."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import select

from backend.store.database import Database, inserting
from backend.store.schema.conversation_tables import message_summaries


@dataclass(frozen=True, slots=True)
class Summary:
    message_id: int
    """The last message that it tells of."""
    text: str
    document_ids: tuple[str, ...]
    """Those that the answers that it tells of rest on."""


def list_of(database: Database, message_ids: Iterable[int]) -> list[Summary]:
    """Return the summaries that end with one of these messages, the longest path first."""
    query = select(message_summaries).order_by(message_summaries.c.message_id.desc())
    query = query.where(message_summaries.c.message_id.in_(list(message_ids)))
    with database.reading() as connection:
        return [
            Summary(row.message_id, row.text, tuple(row.document_ids))
            for row in connection.execute(query)
        ]


def keep(database: Database, summary: Summary) -> None:
    """Keep a summary in place of another one of the same path."""
    with database.writing() as connection:
        made = inserting(connection, message_summaries).values(
            message_id=summary.message_id,
            text=summary.text,
            document_ids=list(summary.document_ids),
        )
        fresh = {name: made.excluded[name] for name in ("text", "document_ids")}
        connection.execute(made.on_conflict_do_update(index_elements=["message_id"], set_=fresh))
