"""Budgets of language model tokens of single people."""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "person_budgets",
        sa.Column(
            "person_id",
            sa.Integer,
            sa.ForeignKey("people.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("tokens", sa.BigInteger, nullable=False),
    )
