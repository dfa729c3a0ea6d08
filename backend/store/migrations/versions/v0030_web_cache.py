"""What conversations have found and read on the web, for an hour."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "web_cache_entries",
        sa.Column(
            "conversation_id",
            sa.Text,
            sa.ForeignKey(
                "conversations.id",
                ondelete="CASCADE",
                name="fk_web_cache_entries_conversation_id",
            ),
            primary_key=True,
        ),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_web_cache_entries_expires_at", "web_cache_entries", ["expires_at"])
