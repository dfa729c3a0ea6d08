"""When an identity provider last stated what it says of somebody."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("identities", sa.Column("stated_at", sa.DateTime(timezone=True)))
    op.execute("UPDATE identities SET stated_at = linked_at")
