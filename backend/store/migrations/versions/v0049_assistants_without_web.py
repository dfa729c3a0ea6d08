"""Whether an assistant may search the web."""

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    allowed = sa.Column("searches_web", sa.Boolean, nullable=False, server_default=sa.true())
    op.add_column("assistants", allowed)
