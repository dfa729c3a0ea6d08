"""The table of what was asked in Slack, beside those of `tables.py`."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import metadata

slack_questions = Table(
    "slack_questions",
    metadata,
    # The message that asks, as Slack names it: each is answered once.
    Column("team_id", Text, primary_key=True),
    Column("channel_id", Text, primary_key=True),
    Column("message_ts", Text, primary_key=True),
    Column("thread_ts", Text, nullable=False),  # of the thread in which it is answered
    Column("user_id", Text, nullable=False),
    Column("reply_ts", Text),  # the message of the bot that says how far the answer is
    # NULL: not begun, refused, or deleted since.
    Column(
        "conversation_id",
        ForeignKey("conversations.id", ondelete="SET NULL"),
        index=True,
    ),
    Column(
        "answer_id",
        ForeignKey("messages.id", ondelete="SET NULL"),
        index=True,
    ),
    Column("host", Text, nullable=False),  # the process that answers
    Column("process", Integer, nullable=False),
    Column("process_started", Text, nullable=False),
    Column("taken_at", Moment, nullable=False),
    Column("ended_at", Moment),  # NULL: being answered
    Index(None, "team_id", "channel_id", "thread_ts"),
    Index(None, "taken_at"),
)
