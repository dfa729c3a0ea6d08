"""Document sets, and the rules that say which documents belong to each."""

import sqlalchemy as sa
from alembic import op

from backend.store.schema.tables import Id

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_sets()
    _create_rules()
    versions = op.create_table(
        "document_set_versions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
    )
    op.bulk_insert(versions, [{"id": 1, "version": 0}])


def _create_sets() -> None:
    op.create_table(
        "document_sets",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("readers", sa.JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True)),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("applied", sa.Integer, nullable=False),
        sa.Column("whole_since", sa.Integer, nullable=False),
        sa.Column("documents", sa.Integer),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer),
        sa.Column("trouble", sa.Text),
        sa.Column("next_try", sa.DateTime(timezone=True)),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("host", sa.Text),
        sa.Column("process", sa.Integer),
        sa.Column("process_started", sa.Text),
        sa.UniqueConstraint("name", name="uq_document_sets_name"),
        sqlite_autoincrement=True,
    )


def _create_rules() -> None:
    op.create_table(
        "document_set_rules",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "set_id",
            sa.Integer,
            sa.ForeignKey(
                "document_sets.id", name="fk_document_set_rules_set_id", ondelete="CASCADE"
            ),
            nullable=False,
        ),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column(
            "source_id",
            sa.Integer,
            sa.ForeignKey("sources.id", name="fk_document_set_rules_source_id", ondelete="CASCADE"),
        ),
        sa.Column("value", Id, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("since", sa.Integer, nullable=False),
    )
    op.create_index("ix_document_set_rules_set_id", "document_set_rules", ["set_id"])
    op.create_index("ix_document_set_rules_source_id", "document_set_rules", ["source_id"])
    op.create_index("ix_document_set_rules_kind_value", "document_set_rules", ["kind", "value"])
