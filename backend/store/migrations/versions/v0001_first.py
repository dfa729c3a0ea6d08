"""Sources, documents and their readers, failures, runs."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _sources()
    _documents()
    _document_readers()
    _failures()
    _runs()


def _sources() -> None:
    op.create_table(
        "sources",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("checkpoint", sa.Text),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sources"),
        sa.UniqueConstraint("name", name="uq_sources_name"),
    )


def _documents() -> None:
    op.create_table(
        "documents",
        sa.Column("id", _ID, nullable=False),
        sa.Column("source_id", sa.Integer, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("link", sa.Text, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("content_hash", sa.Text, nullable=False),
        sa.Column("kept", sa.Text),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("chunks", sa.Integer, nullable=False),
        sa.Column("updated_at", _MOMENT),
        sa.Column("indexed_at", _MOMENT, nullable=False),
        sa.Column("listing", sa.Integer, nullable=False, server_default="0"),
        sa.Column("unsettled", sa.Integer, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_documents_source_id"),
    )
    op.create_index("ix_documents_source_id_id", "documents", ["source_id", "id"])
    op.create_index("ix_documents_kept", "documents", ["kept"])
    op.create_index(
        "ix_documents_unsettled",
        "documents",
        ["source_id"],
        sqlite_where=sa.text("unsettled = 1"),
        postgresql_where=sa.text("unsettled = 1"),
    )


def _document_readers() -> None:
    op.create_table(
        "document_readers",
        sa.Column("document_id", _ID, nullable=False),
        sa.Column("reader", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("document_id", "reader", name="pk_document_readers"),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name="fk_document_readers_document_id",
            ondelete="CASCADE",
        ),
        sqlite_with_rowid=False,
    )


def _failures() -> None:
    op.create_table(
        "failures",
        sa.Column("document_id", _ID, nullable=False),
        sa.Column("source_id", sa.Integer, nullable=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("link", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("first_at", _MOMENT, nullable=False),
        sa.Column("last_at", _MOMENT, nullable=False),
        sa.Column("listing", sa.Integer, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("document_id", name="pk_failures"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_failures_source_id"),
    )
    op.create_index("ix_failures_source_id_document_id", "failures", ["source_id", "document_id"])


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("source_id", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("item", sa.Text),
        sa.Column("counts", sa.JSON, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("process_started", sa.Text, nullable=False),
        sa.Column("started_at", _MOMENT, nullable=False),
        sa.Column("renewed_at", _MOMENT, nullable=False),
        sa.Column("finished_at", _MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_runs_source_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_runs_source_id_id", "runs", ["source_id", "id"])
    op.create_index(
        "uq_runs_running",
        "runs",
        ["source_id"],
        unique=True,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
