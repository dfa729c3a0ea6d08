"""The tables of projects, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint

from backend.store.database import Moment
from backend.store.schema.tables import metadata

projects = Table(
    "projects",
    metadata,
    Column("id", Text, primary_key=True),  # random
    Column("person_id", ForeignKey("people.id")),  # NULL: of the owner of the machine
    Column("name", Text, nullable=False),
    Column("instructions", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Index(None, "person_id"),
)

# Who is in a project besides its owner, by the address that was added.
project_members = Table(
    "project_members",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("email", Text, nullable=False),
    Column("person_id", ForeignKey("people.id")),  # NULL: nobody has had an account of it yet
    UniqueConstraint("project_id", "email"),
    Index(None, "person_id"),
    Index(None, "email"),
    # Ids are never reused: who removes a member removes no other.
    sqlite_autoincrement=True,
)
