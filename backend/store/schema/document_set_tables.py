"""The tables of document sets, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import JSON, Column, ForeignKey, Index, Integer, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import Id, metadata

document_sets = Table(
    "document_sets",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),  # its label once it is removed
    Column("description", Text, nullable=False),
    Column("readers", JSON, nullable=False),  # reader tokens: to whom it is shown
    Column("created_at", Moment, nullable=False),
    Column("changed_at", Moment, nullable=False),
    Column("left_to", ForeignKey("people.id")),  # whose the deleted sources of its last rules were
    Column("removed_at", Moment),  # NULL: it exists; else its documents are still to be updated
    Column("version", Integer, nullable=False),  # of its last change, see `document_set_versions`
    Column("applied", Integer, nullable=False),  # the version with which all documents are updated
    Column(
        "whole_since", Integer, nullable=False
    ),  # 0: only documents of changed rules are updated
    Column("documents", Integer),  # that belong to it, when it was last applied; NULL: never
    Column("done", Integer, nullable=False),  # documents of the current application
    Column("total", Integer),  # NULL: it has not begun
    Column("trouble", Text),  # why the last attempt ended
    Column("next_try", Moment),
    Column("fence", Integer, nullable=False),  # increases with every lease
    Column("lease_until", Moment),  # NULL: not leased
    Column("host", Text),
    Column("process", Integer),
    Column("process_started", Text),
    # Ids are never reused: documents carry them.
    sqlite_autoincrement=True,
)

document_set_rules = Table(
    "document_set_rules",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("set_id", ForeignKey("document_sets.id", ondelete="CASCADE"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("source_id", ForeignKey("sources.id", ondelete="CASCADE")),  # NULL: of any source
    Column("value", Id, nullable=False),
    Column("state", Text, nullable=False),
    Column("since", Integer, nullable=False),  # the version that brought it into this state
    Index(None, "set_id"),
    Index(None, "source_id"),
    Index(None, "kind", "value"),
)

# One row: the number of the latest change of any set.
document_set_versions = Table(
    "document_set_versions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("version", Integer, nullable=False),
)
