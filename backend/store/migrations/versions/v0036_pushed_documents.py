"""What programs put in: their requests, and the documents."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "pushes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("source_id", sa.Integer, sa.ForeignKey("sources.id"), nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("answer", sa.JSON),
        sa.Column("pushed_at", sa.DateTime(timezone=True), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_pushes_source_id_key", "pushes", ["source_id", "key"], unique=True)
    op.create_index("ix_pushes_pushed_at", "pushes", ["pushed_at"])
    op.create_table(
        "pushed_documents",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("source_id", sa.Integer, sa.ForeignKey("sources.id"), nullable=False),
        sa.Column("push", sa.Integer, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("readers", sa.JSON, nullable=False),
        sa.Column("content", sa.LargeBinary),
        sa.Column("file", sa.LargeBinary),
        sa.Column("file_size", sa.Integer, nullable=False),
        sa.Column("problem", sa.Text),
        sa.Column("pushed_at", sa.DateTime(timezone=True), nullable=False),
    )
    for columns in (["source_id", "push", "id"], ["source_id", "id"]):
        op.create_index(f"ix_pushed_documents_{'_'.join(columns)}", "pushed_documents", columns)
