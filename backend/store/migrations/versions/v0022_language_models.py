"""The language models that admins set, what each is used for, and the tokens that people have used."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "language_models",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("base_url", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("context_window", sa.Integer, nullable=False),
        sa.Column("sees_pictures", sa.Boolean, nullable=False),
        sa.Column("calls_tools", sa.Boolean, nullable=False),
        sa.Column("reasons", sa.Boolean, nullable=False),
        sa.Column("input_price", sa.Float),
        sa.Column("output_price", sa.Float),
        sa.UniqueConstraint("name", name="uq_language_models_name"),
    )
    op.create_table(
        "model_roles",
        sa.Column("role", sa.Text, primary_key=True),
        sa.Column(
            "model_id",
            sa.Integer,
            sa.ForeignKey("language_models.id", name="fk_model_roles_model_id"),
            nullable=False,
        ),
    )
    op.create_table(
        "model_usage",
        sa.Column("day", sa.Date, primary_key=True),
        sa.Column("person_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("input_tokens", sa.BigInteger, nullable=False),
        sa.Column("output_tokens", sa.BigInteger, nullable=False),
        sa.Column("calls", sa.Integer, nullable=False),
    )
