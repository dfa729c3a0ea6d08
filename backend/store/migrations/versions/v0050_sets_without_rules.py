"""Who looks after a document set whose sources were all deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("ALTER TABLE document_sets ADD COLUMN left_to INTEGER REFERENCES people (id)")
    else:
        op.add_column("document_sets", sa.Column("left_to", sa.Integer))
        op.create_foreign_key(
            "fk_document_sets_left_to", "document_sets", "people", ["left_to"], ["id"]
        )
