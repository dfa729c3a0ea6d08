"""What documents say lies in the database, no longer in files beside it.

Those files are not taken over: a document whose content is gone is read again by the next run of its source.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "contents",
        sa.Column("document_id", _ID, nullable=False),
        sa.Column("content", sa.LargeBinary),
        sa.PrimaryKeyConstraint("document_id", name="pk_contents"),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name="fk_contents_document_id",
            ondelete="CASCADE",
        ),
    )
    op.drop_index("ix_documents_kept", "documents")
    op.drop_column("documents", "kept")
