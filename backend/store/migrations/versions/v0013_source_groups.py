"""The groups and scopes of sources by name, and listings of them that resume."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "source_groups",
        sa.Column("token", sa.Text, primary_key=True),
        sa.Column("source_id", sa.Integer, sa.ForeignKey("sources.id"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("listing", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_source_groups_source_id", "source_groups", ["source_id"])
    op.create_table(
        "group_listings",
        sa.Column("source_id", sa.Integer, sa.ForeignKey("sources.id"), primary_key=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("checkpoint", sa.Text),
        sa.Column("is_whole", sa.Integer, nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
    )
    op.execute(
        "INSERT INTO source_groups (token, source_id, name, listing)"
        " SELECT DISTINCT token, source_id, '', 0 FROM memberships"
    )
