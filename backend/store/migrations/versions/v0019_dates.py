"""Since when a group has a member, and which links of the machine were used."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("memberships", sa.Column("since", sa.DateTime(timezone=True)))
    op.create_table(
        "used_links",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=False),
    )
