"""Conjunctions of clauses, each known to documents by one derived token."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "conjunctions",
        sa.Column("token", sa.Text, primary_key=True),
        sa.Column("clauses", sa.Integer, nullable=False),
    )
    op.create_table(
        "conjunction_readers",
        sa.Column("reader", sa.Text, primary_key=True),
        sa.Column("conjunction", sa.Text, sa.ForeignKey("conjunctions.token"), primary_key=True),
        sa.Column("clause", sa.Integer, primary_key=True, autoincrement=False),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_conjunction_readers_conjunction_clause",
        "conjunction_readers",
        ["conjunction", "clause"],
    )
