"""Workers that say that they live, and how often a run was begun in vain."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("tries", sa.Integer, nullable=False, server_default="0"))
    op.create_table(
        "workers",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("process_started", sa.Text, nullable=False),
        sa.Column("queue", sa.Text, nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("trouble", sa.Text),
        sa.PrimaryKeyConstraint("host", "process", "process_started", name="pk_workers"),
    )
