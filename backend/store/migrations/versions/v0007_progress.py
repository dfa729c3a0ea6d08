"""How far a run is: what is done of its stage, of how much, since when, and what is embedded."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("done", sa.Integer, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("total", sa.Integer))
    op.add_column("runs", sa.Column("stage_at", sa.DateTime(timezone=True)))
    op.add_column("runs", sa.Column("embedding", sa.JSON(none_as_null=True)))
    op.add_column("batches", sa.Column("changes", sa.Integer, nullable=False, server_default="0"))
