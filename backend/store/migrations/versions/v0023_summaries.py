"""Summaries of the older messages of conversations."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "message_summaries",
        sa.Column(
            "message_id",
            sa.Integer,
            sa.ForeignKey(
                "messages.id", ondelete="CASCADE", name="fk_message_summaries_message_id"
            ),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("document_ids", sa.JSON, nullable=False),
    )
