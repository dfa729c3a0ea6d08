"""The programs that people connected by OAuth: clients and grants."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_clients()
    _create_grants()


def _create_clients() -> None:
    op.create_table(
        "oauth_clients",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("redirect_uris", sa.JSON, nullable=False),
        sa.Column("secret_digest", sa.Text),
        sa.Column("auth_method", sa.Text, nullable=False),
        sa.Column("grant_types", sa.JSON, nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("network", sa.Text, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("connected_at", _MOMENT),
    )
    for columns in (["network", "created_at"], ["created_at"]):
        op.create_index(f"ix_oauth_clients_{'_'.join(columns)}", "oauth_clients", columns)


def _create_grants() -> None:
    op.create_table(
        "oauth_grants",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "client_id",
            sa.Text,
            sa.ForeignKey("oauth_clients.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column(
            "person_id", sa.Integer, sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("resource", sa.Text, nullable=False),
        sa.Column("scopes", sa.JSON, nullable=False),
        sa.Column("redirect_uri", sa.Text, nullable=False),
        sa.Column("code_digest", sa.Text, nullable=False, unique=True),
        sa.Column("code_challenge", sa.Text, nullable=False),
        sa.Column("created_at", _MOMENT, nullable=False),
        sa.Column("redeemed_at", _MOMENT),
        sa.Column("access_digest", sa.Text, unique=True),
        sa.Column("access_scopes", sa.JSON),
        sa.Column("access_expires_at", _MOMENT),
        sa.Column("family_digest", sa.Text, unique=True),
        sa.Column("refresh_digest", sa.Text),
        sa.Column("ends_at", _MOMENT, nullable=False),
        sa.Column("last_used_at", _MOMENT),
        sqlite_autoincrement=True,
    )
    for column in ("person_id", "client_id", "ends_at"):
        op.create_index(f"ix_oauth_grants_{column}", "oauth_grants", [column])
