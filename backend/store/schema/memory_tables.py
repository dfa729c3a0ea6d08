"""The table of what people asked Quarry to remember, beside those of `tables.py`; `migrations/` creates and changes it."""

from sqlalchemy import Column, ForeignKey, Index, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import metadata

memories = Table(
    "memories",
    metadata,
    Column("id", Text, primary_key=True),  # random, and never given again: answers rest on it
    # NULL: of the owner of the machine
    Column("person_id", ForeignKey("people.id", ondelete="CASCADE")),
    Column("text", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index(None, "person_id", "created_at"),
)
