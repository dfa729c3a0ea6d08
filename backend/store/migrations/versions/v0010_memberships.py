"""Who belongs to the groups and scopes of a source, which are named by an id that is never used again."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_KEPT = "id, name, kind, settings, checkpoint, created_at, credential, paused_at, served"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _number_sources_for_good()
    op.create_table(
        "memberships",
        sa.Column("member", sa.Text, primary_key=True),
        sa.Column("token", sa.Text, primary_key=True),
        sa.Column("source_id", sa.Integer, sa.ForeignKey("sources.id"), nullable=False),
        sa.Column("pending", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memberships_source_id_token", "memberships", ["source_id", "token"])


def _number_sources_for_good() -> None:
    """Create the table again: SQLite gives the highest id a second time unless it counts.

    The rows are entered under the old name, because only so are the references to them found again before
    the transaction ends.
    """
    op.execute("PRAGMA defer_foreign_keys = ON")
    op.execute("CREATE TABLE former_sources AS SELECT * FROM sources")
    op.drop_table("sources")
    op.create_table(
        "sources",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("checkpoint", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("credential", sa.Text),
        sa.Column("paused_at", sa.DateTime(timezone=True)),
        sa.Column("served", sa.Integer, nullable=False, server_default="0"),
        sqlite_autoincrement=True,
    )
    op.execute(f"INSERT INTO sources ({_KEPT}) SELECT {_KEPT} FROM former_sources")
    op.drop_table("former_sources")
