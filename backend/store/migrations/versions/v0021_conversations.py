"""Conversations: their messages, and the answers that are being written."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_conversations()
    _create_messages()
    _create_turns()


def _create_conversations() -> None:
    op.create_table(
        "conversations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("title_by", sa.Text, nullable=False),
        sa.Column("folded_title", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("archived_at", sa.DateTime(timezone=True)),
        sa.Column("leaf_id", sa.Integer),
    )
    op.create_index(
        "ix_conversations_person_id_updated_at", "conversations", ["person_id", "updated_at"]
    )


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "conversation_id",
            sa.Text,
            sa.ForeignKey("conversations.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("parent_id", sa.Integer, sa.ForeignKey("messages.id")),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("folded_text", sa.Text),
        sa.Column("filters", sa.JSON),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.Text),
        sa.Column("answer", sa.JSON),
        sa.Column("problem", sa.JSON),
        sa.Column("document_ids", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_messages_conversation_id_parent_id", "messages", ["conversation_id", "parent_id"]
    )
    op.create_index("ix_messages_parent_id", "messages", ["parent_id"])


def _create_turns() -> None:
    op.create_table(
        "turns",
        sa.Column(
            "message_id",
            sa.Integer,
            sa.ForeignKey("messages.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("process_started", sa.Text, nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stop_asked_at", sa.DateTime(timezone=True)),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
    )
    op.create_index("ix_turns_ended_at", "turns", ["ended_at"])
    op.create_table(
        "turn_events",
        sa.Column(
            "message_id",
            sa.Integer,
            sa.ForeignKey("turns.message_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("first", sa.Integer, primary_key=True),
        sa.Column("last", sa.Integer, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
    )
