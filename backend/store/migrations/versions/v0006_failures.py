"""Failures that only a change of the document can mend, and the run in which each was last seen."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("failures", sa.Column("version", sa.Text))
    op.add_column("failures", sa.Column("run", sa.Integer))
