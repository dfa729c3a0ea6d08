"""The tables of projects, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import Column, ForeignKey, Index, Table, Text

from backend.store.database import Moment
from backend.store.tables import metadata

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

# Who is in a project besides its owner.
project_members = Table(
    "project_members",
    metadata,
    Column("project_id", ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True),
    Column("person_id", ForeignKey("people.id"), primary_key=True),
    Index(None, "person_id"),
)
