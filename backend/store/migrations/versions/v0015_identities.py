"""Who people are at an identity provider, and the groups that it states."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "identities",
        sa.Column("issuer", sa.Text, primary_key=True),
        sa.Column("subject", sa.Text, primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("linked_at", _MOMENT, nullable=False),
    )
    op.create_index("ix_identities_person_id", "identities", ["person_id"])
    op.create_table(
        "finished_attempts",
        sa.Column("state", sa.Text, primary_key=True),
        sa.Column("expires_at", _MOMENT, nullable=False),
    )
    _create_groups()


def _create_groups() -> None:
    op.create_table(
        "groups",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.UniqueConstraint("name", name="uq_groups_name"),
    )
    op.create_table(
        "group_members",
        sa.Column("group_id", sa.Integer, sa.ForeignKey("groups.id"), primary_key=True),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), primary_key=True),
    )
    op.create_index("ix_group_members_person_id", "group_members", ["person_id"])
