"""Since when the rights of each source are compared: the start of its last whole listing."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("listings", sa.Column("compared_at", sa.DateTime(timezone=True)))
