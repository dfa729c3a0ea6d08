"""Listings that resume: the latest of each source, and the number of the one that a run applied."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "listings",
        sa.Column("source_id", sa.Integer, sa.ForeignKey("sources.id"), primary_key=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("checkpoint", sa.Text),
        sa.Column("started_at", sa.DateTime(timezone=True)),
    )
    op.add_column("runs", sa.Column("listing", sa.Integer))
    # Until now the number of a listing was that of its run.
    op.execute("UPDATE runs SET listing = id WHERE kind NOT IN ('retry', 'removal', 'reindex')")
