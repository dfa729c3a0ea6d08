"""Since when somebody is in a group of Quarry's own, or of a provider."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("group_members", sa.Column("since", sa.DateTime(timezone=True)))
