"""Providers of web search, and what admins set for the web."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "web_providers",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("credential", sa.Text),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("is_enabled", sa.Boolean, nullable=False),
        sa.Column("per_minute", sa.Integer),
        sa.Column("waits_until", sa.DateTime(timezone=True)),
        sa.Column("wait_reason", sa.Text),
        sa.UniqueConstraint("name", name="uq_web_providers_name"),
    )
    rules = op.create_table(
        "web_rules",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("is_on", sa.Boolean, nullable=False),
        sa.Column("allowed_domains", sa.JSON, nullable=False),
        sa.Column("blocked_domains", sa.JSON, nullable=False),
        sa.Column("keeps_internal_names", sa.Boolean, nullable=False),
    )
    first = {"id": 1, "is_on": False, "keeps_internal_names": True}
    op.bulk_insert(rules, [{**first, "allowed_domains": [], "blocked_domains": []}])
