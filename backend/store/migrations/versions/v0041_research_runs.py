"""Research runs, and the events of each."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_runs()
    op.create_table(
        "research_events",
        sa.Column(
            "run_id",
            sa.Text,
            sa.ForeignKey("research_runs.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("first", sa.Integer, primary_key=True),
        sa.Column("last", sa.Integer, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
    )


def _create_runs() -> None:
    op.create_table(
        "research_runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("acting_as", sa.JSON),
        sa.Column(
            "conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE")
        ),
        sa.Column("project_id", sa.Text, sa.ForeignKey("projects.id", ondelete="SET NULL")),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("confirms_plan", sa.Boolean, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("tasks", sa.Integer, nullable=False),
        sa.Column("tasks_done", sa.Integer, nullable=False),
        sa.Column("history_document_ids", sa.JSON, nullable=False),
        sa.Column("document_ids", sa.JSON, nullable=False),
        sa.Column("has_report", sa.Boolean, nullable=False),
        sa.Column("problem", sa.Text),
        sa.Column("last_event", sa.Integer, nullable=False),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("host", sa.Text),
        sa.Column("process", sa.Integer),
        sa.Column("process_started", sa.Text),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("claimed_at", sa.DateTime(timezone=True)),
        sa.Column("queued_at", sa.DateTime(timezone=True)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("seen_at", sa.DateTime(timezone=True)),
    )
    for columns in (
        ["conversation_id"],
        ["project_id"],
        ["person_id", "updated_at"],
        ["ended_at"],
    ):
        op.create_index(f"ix_research_runs_{'_'.join(columns)}", "research_runs", columns)
