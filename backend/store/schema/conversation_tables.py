"""The tables of conversations, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import JSON, Column, ForeignKey, Index, Integer, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import metadata

conversations = Table(
    "conversations",
    metadata,
    Column("id", Text, primary_key=True),  # random: an address that names it tells nothing
    Column("person_id", ForeignKey("people.id")),  # NULL: of the owner of the machine
    Column("title", Text, nullable=False),
    Column(
        "title_by", Text, nullable=False
    ),  # `words` of the first question, a `model`, a `person`
    Column("folded_title", Text, nullable=False),  # as it is searched
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("archived_at", Moment),  # NULL: not archived
    Column("leaf_id", Integer),  # the message whose path from the root is shown
    # NULL: the default assistant. No foreign key: a conversation outlives its assistant.
    Column("assistant_id", Text),
    Column("project_id", ForeignKey("projects.id"), index=True),
    Index(None, "person_id", "updated_at"),
)

messages = Table(
    "messages",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("conversation_id", ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    Column("parent_id", ForeignKey("messages.id")),  # NULL: the first question, or it edited
    Column("role", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("folded_text", Text),  # as it is searched; of questions only
    Column("filters", JSON(none_as_null=True)),  # of questions only
    Column("search_scope", Text),  # of questions only: `files`, or `everything`
    # Of questions only: the mode and its switches, as they were asked for. NULL: the default.
    Column("mode", JSON(none_as_null=True)),
    Column("created_at", Moment, nullable=False),
    Column("status", Text),  # of answers only, as the following columns
    Column("answer", JSON(none_as_null=True)),  # NULL until it is finished
    Column("problem", JSON(none_as_null=True)),  # why it failed
    Column("document_ids", JSON, nullable=False),  # what the answer rests on
    Column(
        "losses", JSON(none_as_null=True)
    ),  # steps that it was written without, with the reasons
    Index(None, "conversation_id", "parent_id"),
    Index(None, "parent_id"),
    # Ids are never reused: an address that names one means no other later.
    sqlite_autoincrement=True,
)

# What answers say, as it is searched. A table of its own, so that a search of titles and questions reads none of it.
answer_texts = Table(
    "answer_texts",
    metadata,
    Column(
        "message_id",
        ForeignKey("messages.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    # No key of the table of conversations: who ends an answer would have to lock its conversation, while who deletes that locks its answers.
    Column("conversation_id", Text, nullable=False, index=True),
    Column("folded_text", Text, nullable=False),
)

# What a language model is given in place of older messages: of the path down to this one, which it includes.
message_summaries = Table(
    "message_summaries",
    metadata,
    Column(
        "message_id",
        ForeignKey("messages.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("text", Text, nullable=False),
    Column("document_ids", JSON, nullable=False),  # what the answers that it tells of rest on
)

# Answers that are being written, or were until an hour ago, each with the process that writes it.
turns = Table(
    "turns",
    metadata,
    Column("message_id", ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True),
    Column("host", Text, nullable=False),
    Column("process", Integer, nullable=False),
    Column("process_started", Text, nullable=False),
    Column("lease_until", Moment, nullable=False),  # renewed by its process before this time
    Column("stop_asked_at", Moment),
    Column("ended_at", Moment),
    Index(None, "ended_at"),
)

turn_events = Table(
    "turn_events",
    metadata,
    Column("message_id", ForeignKey("turns.message_id", ondelete="CASCADE"), primary_key=True),
    Column("first", Integer, primary_key=True),  # the number of its first event
    Column("last", Integer, nullable=False),
    Column("payload", Text, nullable=False),  # JSON: number, name and data of each
)
