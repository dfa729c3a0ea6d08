"""Who is in a project is kept by the address that its owner has added, whether or not it has an account yet."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Copied, and not renamed: a renamed table keeps the names of its constraints.
    op.execute("CREATE TABLE former_project_members AS SELECT * FROM project_members")
    op.drop_table("project_members")
    op.create_table(
        "project_members",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "project_id",
            sa.Text,
            sa.ForeignKey("projects.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("person_id", sa.Integer, sa.ForeignKey("people.id")),
        sa.UniqueConstraint("project_id", "email", name="uq_project_members_project_id_email"),
        sqlite_autoincrement=True,
    )
    op.execute(
        "INSERT INTO project_members (project_id, email, person_id)"
        " SELECT former.project_id, people.email, people.id"
        " FROM former_project_members AS former JOIN people ON people.id = former.person_id"
    )
    op.drop_table("former_project_members")
    op.create_index("ix_project_members_person_id", "project_members", ["person_id"])
    op.create_index("ix_project_members_email", "project_members", ["email"])
