"""People, their sessions and devices, invitations, failed sign-ins; tokens of people; where an action came from."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_KEPT = "id, name, digest, scopes, created_at, expires_at, last_used_at"
_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_people()
    _create_sessions()
    _create_sign_in_tables()
    if op.get_bind().dialect.name == "sqlite":
        _create_tokens_again()
    else:
        op.drop_constraint("uq_api_tokens_name", "api_tokens")
        op.add_column("api_tokens", sa.Column("person_id", sa.Integer))
        op.create_foreign_key(
            "fk_api_tokens_person_id", "api_tokens", "people", ["person_id"], ["id"]
        )
    _index_tokens()
    op.add_column("audit", sa.Column("address", sa.Text))


def _create_people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("password_hash", sa.Text),
        sa.Column("verified", sa.Text),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("disabled_at", _MOMENT),
        sa.UniqueConstraint("email", name="uq_people_email"),
        sqlite_autoincrement=True,
    )


def _create_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("last_used_at", _MOMENT, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.Column("address", sa.Text),
        sa.Column("user_agent", sa.Text),
        sa.UniqueConstraint("digest", name="uq_sessions_digest"),
    )
    op.create_index("ix_sessions_person_id", "sessions", ["person_id"])


def _create_sign_in_tables() -> None:
    op.create_table(
        "invitations",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("email", sa.Text),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.Column("invited_by", sa.Text, nullable=False),
        sa.UniqueConstraint("email", name="uq_invitations_email"),
    )
    op.create_table(
        "devices",
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id"), primary_key=True),
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("seen_at", _MOMENT, nullable=False),
    )
    op.create_table(
        "sign_in_failures",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("at", _MOMENT, nullable=False),
    )
    op.create_index("ix_sign_in_failures_key_at", "sign_in_failures", ["key", "at"])
    op.create_index("ix_sign_in_failures_at", "sign_in_failures", ["at"])


def _create_tokens_again() -> None:
    """Let tokens of different people have the same name, by a new table: SQLite changes no constraint of one."""
    op.rename_table("api_tokens", "former_api_tokens")
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("expires_at", _MOMENT, nullable=False),
        sa.Column("last_used_at", _MOMENT),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.UniqueConstraint("digest", name="uq_api_tokens_digest"),
    )
    op.execute(f"INSERT INTO api_tokens ({_KEPT}) SELECT {_KEPT} FROM former_api_tokens")
    op.drop_table("former_api_tokens")


def _index_tokens() -> None:
    of_nobody, of_person = sa.text("person_id IS NULL"), sa.text("person_id IS NOT NULL")
    op.create_index(
        "uq_api_tokens_service",
        "api_tokens",
        ["name"],
        unique=True,
        sqlite_where=of_nobody,
        postgresql_where=of_nobody,
    )
    op.create_index(
        "uq_api_tokens_personal",
        "api_tokens",
        ["person_id", "name"],
        unique=True,
        sqlite_where=of_person,
        postgresql_where=of_person,
    )
