"""The table of what conversations have found and read on the web, beside those of `tables.py`."""

from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import metadata

web_cache_entries = Table(
    "web_cache_entries",
    metadata,
    # A conversation is of one person: so is what it has found.
    Column("conversation_id", ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("kind", Text, primary_key=True),  # `search` or `page`
    Column("key", Text, primary_key=True),  # a hash of what was searched or read
    Column("content", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),  # of the content, in bytes
    Column("used_at", Moment, nullable=False),
    # The end of its session, which each turn puts off.
    Column("expires_at", Moment, nullable=False, index=True),
)
