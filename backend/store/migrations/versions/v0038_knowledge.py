"""What research has found out, and the documents that it rests on."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

_ID = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "knowledge_items",
        sa.Column("id", sa.Text, primary_key=True),
        _refer("person_id", "people.id", sa.Integer),
        _refer("conversation_id", "conversations.id", sa.Text),
        _refer("project_id", "projects.id", sa.Text),
        sa.Column("run_id", sa.Text),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("updated", sa.Text),
        sa.Column("source_code", sa.Text),
        sa.Column("quotes", sa.JSON, nullable=False),
        sa.Column("pages", sa.JSON, nullable=False),
        sa.Column("unverified", sa.Boolean, nullable=False),
        sa.Column("made_at", _MOMENT, nullable=False),
        sa.Column("changed_at", _MOMENT, nullable=False),
        sa.Column("corrected_at", _MOMENT),
    )
    for columns in (["person_id", "made_at"], ["conversation_id"], ["project_id"]):
        op.create_index(f"ix_knowledge_items_{'_'.join(columns)}", "knowledge_items", columns)
    op.create_table(
        "knowledge_sources",
        sa.Column(
            "item_id",
            sa.Text,
            sa.ForeignKey("knowledge_items.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("document_id", _ID, primary_key=True),
        sa.Column("content_hash", sa.Text),
        sa.Column("checked_hash", sa.Text),
        sa.Column("quotes_stand", sa.Boolean, nullable=False),
    )


def _refer(name: str, target: str, kind: type[sa.Integer | sa.Text]) -> sa.Column[object]:
    return sa.Column(name, kind, sa.ForeignKey(target, ondelete="CASCADE"))
