"""Files that projects and assistants hold."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for kind in ("project", "assistant"):
        table = f"{kind}_files"
        holder, file = f"{kind}_id", "file_id"
        op.create_table(
            table,
            sa.Column(
                holder,
                sa.Text,
                sa.ForeignKey(f"{kind}s.id", ondelete="CASCADE"),
                primary_key=True,
            ),
            sa.Column(
                file,
                sa.Text,
                sa.ForeignKey("user_files.id", ondelete="CASCADE"),
                primary_key=True,
            ),
            sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        )
        op.create_index(f"ix_{table}_file_id", table, [file])
    op.add_column(
        "user_files", sa.Column("labels_due", sa.Integer, nullable=False, server_default="0")
    )
