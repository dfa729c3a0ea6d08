"""The bytes of uploads that wait to be read, and who writes to the index or holds it; what answers were written without."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_LOST = "The server ended while it read this file. Remove it, then add it again."


def upgrade() -> None:
    op.create_table(
        "waiting_uploads",
        sa.Column(
            "file_id",
            sa.Text,
            sa.ForeignKey("user_files.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("host", sa.Text),
        sa.Column("process", sa.Integer),
        sa.Column("process_started", sa.Text),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
    )
    op.create_table(
        "index_claims",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("process_started", sa.Text, nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=False),
    )
    # The bytes of these were in the memory of a process that has ended.
    user_files = sa.table("user_files", sa.column("status"), sa.column("problem"))
    left = user_files.update().where(user_files.c.status == "reading")
    op.execute(left.values(status="failed", problem=_LOST))
    for name in ("host", "process", "process_started", "lease_until"):
        op.drop_column("user_files", name)
    op.add_column("messages", sa.Column("losses", sa.JSON))
