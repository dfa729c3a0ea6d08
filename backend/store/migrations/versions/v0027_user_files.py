"""Files of people, and the questions that they came with."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "user_files",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("text_length", sa.Integer),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("problem", sa.Text),
        sa.Column("document_id", sa.Text, nullable=False),
        sa.Column("picture", sa.LargeBinary),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("process_started", sa.Text, nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_user_files_person_id_created_at", "user_files", ["person_id", "created_at"])
    op.create_index("ix_user_files_status", "user_files", ["status"])
    op.create_table(
        "message_files",
        sa.Column(
            "message_id",
            sa.Integer,
            sa.ForeignKey("messages.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column(
            "file_id",
            sa.Text,
            sa.ForeignKey("user_files.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("place", sa.Integer, nullable=False),
    )
    op.create_index("ix_message_files_file_id", "message_files", ["file_id"])
    op.add_column("messages", sa.Column("search_scope", sa.Text))
