"""The tables of what research has found out, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import JSON, Boolean, Column, ForeignKey, Index, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import Id, metadata

knowledge_items = Table(
    "knowledge_items",
    metadata,
    Column("id", Text, primary_key=True),  # random: an address that names it tells nothing
    # NULL: of the owner of the machine
    Column("person_id", ForeignKey("people.id", ondelete="CASCADE")),
    # Both NULL: it belongs to its owner alone, and to no conversation.
    Column("conversation_id", ForeignKey("conversations.id", ondelete="CASCADE")),
    Column("project_id", ForeignKey("projects.id", ondelete="CASCADE")),
    Column("run_id", Text),  # which run of research made it; NULL: none
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("updated", Text),  # as of when the answer holds: a time, or an age
    Column("source_code", Text),
    Column("quotes", JSON, nullable=False),  # the references of the answer
    Column("pages", JSON, nullable=False),  # of the web, each with a hash of its text
    Column("unverified", Boolean, nullable=False),  # some of its sources were dropped by an import
    Column("made_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("corrected_at", Moment),  # NULL: nobody has corrected it
    Index(None, "person_id", "made_at"),
    Index(None, "conversation_id"),
    Index(None, "project_id"),
)

# The documents that an item rests on, quoted or not: who may not read one of them does not see the item.
knowledge_sources = Table(
    "knowledge_sources",
    metadata,
    Column("item_id", ForeignKey("knowledge_items.id", ondelete="CASCADE"), primary_key=True),
    # No foreign key: what becomes of the document is looked up.
    Column("document_id", Id, primary_key=True),
    Column("content_hash", Text),  # as it was; NULL: unknown
    Column("checked_hash", Text),  # for which the following column holds; NULL: none
    Column("quotes_stand", Boolean, nullable=False),
)
