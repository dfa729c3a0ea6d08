"""The accounts that people have at sources."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    ids = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "source_accounts",
        sa.Column("id", ids, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("source_id", sa.Integer, sa.ForeignKey("sources.id")),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("token", sa.Text),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("mapped_at", sa.DateTime(timezone=True)),
        sa.Column("mapped_by", sa.Text),
        sa.UniqueConstraint("token", name="uq_source_accounts_token"),
    )
    op.create_index("ix_source_accounts_source_id", "source_accounts", ["source_id"])
    op.create_index(
        "ix_source_accounts_person_id_source", "source_accounts", ["person_id", "source"]
    )
