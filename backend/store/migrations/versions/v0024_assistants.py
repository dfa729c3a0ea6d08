"""Assistants, of which the default one is always there, and projects; what a conversation belongs to."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    assistants = _create_assistants()
    op.create_table(
        "assistant_groups",
        sa.Column(
            "assistant_id",
            sa.Text,
            sa.ForeignKey("assistants.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column(
            "group_id",
            sa.Integer,
            sa.ForeignKey("groups.id", ondelete="CASCADE"),
            primary_key=True,
        ),
    )
    op.create_index("ix_assistant_groups_group_id", "assistant_groups", ["group_id"])
    # No foreign key: a conversation outlives its assistant, and says that this is gone.
    op.add_column("conversations", sa.Column("assistant_id", sa.Text))
    op.execute(sa.insert(assistants).values(_DEFAULT))
    _create_projects()
    _add_project_to_conversations()


def _create_projects() -> None:
    op.create_table(
        "projects",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("instructions", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_projects_person_id", "projects", ["person_id"])
    op.create_table(
        "project_members",
        sa.Column(
            "project_id",
            sa.Text,
            sa.ForeignKey("projects.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), primary_key=True),
    )
    op.create_index("ix_project_members_person_id", "project_members", ["person_id"])


def _add_project_to_conversations() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("ALTER TABLE conversations ADD COLUMN project_id TEXT REFERENCES projects (id)")
    else:
        op.add_column("conversations", sa.Column("project_id", sa.Text))
        op.create_foreign_key(
            "fk_conversations_project_id",
            "conversations",
            "projects",
            ["project_id"],
            ["id"],
        )
    op.create_index("ix_conversations_project_id", "conversations", ["project_id"])


def _create_assistants() -> sa.Table:
    created = op.create_table(
        "assistants",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("instructions", sa.Text, nullable=False),
        sa.Column("starters", sa.JSON, nullable=False),
        sa.Column("sources", sa.JSON, nullable=False),
        sa.Column("sets", sa.JSON, nullable=False),
        sa.Column("model_id", sa.Integer, sa.ForeignKey("language_models.id", ondelete="SET NULL")),
        sa.Column("temperature", sa.Float),
        sa.Column("searches", sa.Boolean, nullable=False),
        sa.Column("visibility", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_assistants_person_id", "assistants", ["person_id"])
    return created


_NOW = datetime.now(UTC)
_DEFAULT = {
    "id": "default",
    "name": "Default assistant",
    "description": "Answers from everything that you may read.",
    "instructions": "",
    "starters": [],
    "sources": [],
    "sets": [],
    "searches": True,
    "visibility": "all",
    "created_at": _NOW,
    "updated_at": _NOW,
}
