"""How the sources of a question are found: by the switches of Chat mode, or by a model in Agent mode. Which domains an assistant asks."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("messages", sa.Column("mode", sa.JSON))
    for name in ("allowed_domains", "blocked_domains"):
        op.add_column("assistants", sa.Column(name, sa.JSON))
