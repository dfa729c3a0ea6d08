"""Since when listings lack a document that its source's retention keeps."""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("documents", sa.Column("unlisted_since", sa.DateTime(timezone=True)))
