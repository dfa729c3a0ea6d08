"""Runs that wait, pause and ask; batches under leases; the schedule; tries of failures; audit."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _columns()
    _batches()
    _schedule()
    _audit()


def _columns() -> None:
    op.add_column("sources", sa.Column("paused_at", _MOMENT))
    op.add_column("sources", sa.Column("served", sa.Integer, nullable=False, server_default="0"))
    op.add_column("failures", sa.Column("next_try", _MOMENT))
    op.add_column("runs", sa.Column("lease_until", _MOMENT))
    op.add_column("runs", sa.Column("fetched", sa.Integer, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("waiting_for", sa.Text))
    op.add_column("runs", sa.Column("next_try", _MOMENT))
    op.add_column("runs", sa.Column("decision", sa.JSON))
    op.add_column("runs", sa.Column("accepted", sa.Integer))


def _batches() -> None:
    op.create_table(
        "batches",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("source_id", sa.Integer, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("after", sa.Integer, nullable=False),
        sa.Column("document_ids", sa.JSON, nullable=False),
        sa.Column("payload", sa.LargeBinary, nullable=False),
        sa.Column("saved_at", _MOMENT, nullable=False),
        sa.Column("fence", sa.Integer, nullable=False, server_default="0"),
        sa.Column("lease_until", _MOMENT),
        sa.Column("host", sa.Text),
        sa.Column("process", sa.Integer),
        sa.Column("process_started", sa.Text),
        sa.Column("tries", sa.Integer, nullable=False, server_default="0"),
        sa.Column("next_try", _MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_batches"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_batches_source_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_batches_run_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_batches_source_id_id", "batches", ["source_id", "id"])
    op.create_index("ix_batches_run_id", "batches", ["run_id"])


def _schedule() -> None:
    op.create_table(
        "schedule",
        sa.Column("source_id", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("every", sa.Integer),
        sa.Column("last_at", _MOMENT),
        sa.Column("asked_at", _MOMENT),
        sa.Column("accepted", sa.Integer),
        sa.PrimaryKeyConstraint("source_id", "kind", name="pk_schedule"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_schedule_source_id"),
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("at", _MOMENT, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_subject_id", "audit", ["subject", "id"])
