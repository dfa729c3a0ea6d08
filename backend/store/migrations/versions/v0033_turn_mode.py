"""How the sources of a question are found: by the switches of Chat mode, or by a model in Agent mode."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("messages", sa.Column("mode", sa.JSON))
