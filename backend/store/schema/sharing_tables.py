"""The tables of what is shared of conversations and said of their answers, beside those of `tables.py`."""

from sqlalchemy import Column, ForeignKey, Integer, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import metadata

conversation_shares = Table(
    "conversation_shares",
    metadata,
    Column("id", Text, primary_key=True),  # random: who knows the link may follow it
    Column(
        "conversation_id",
        ForeignKey("conversations.id", ondelete="CASCADE"),
        nullable=False,
        unique=True,
    ),
    # The path to this message is shared, nothing behind it.
    Column("message_id", ForeignKey("messages.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", Moment, nullable=False),
)

answer_feedback = Table(
    "answer_feedback",
    metadata,
    Column("id", Integer, primary_key=True),  # grows with each change: the newest has the highest
    Column(
        "message_id", ForeignKey("messages.id", ondelete="CASCADE"), nullable=False, unique=True
    ),
    Column("rating", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("source", Integer),  # the number of the source that is said to be wrong
    Column("given_at", Moment, nullable=False),
    sqlite_autoincrement=True,
)
