"""Who owns a source, and who entered its credential."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("owner_id", "credential_person_id"):
        if op.get_bind().dialect.name == "sqlite":
            op.execute(f"ALTER TABLE sources ADD COLUMN {name} INTEGER REFERENCES people (id)")
        else:
            op.add_column("sources", sa.Column(name, sa.Integer))
            op.create_foreign_key(f"fk_sources_{name}", "sources", "people", [name], ["id"])
