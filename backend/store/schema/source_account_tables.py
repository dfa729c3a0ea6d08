"""The table of the accounts that people have at sources, beside those of `tables.py`."""

from sqlalchemy import Column, ForeignKey, Index, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import Id, metadata

source_accounts = Table(
    "source_accounts",
    metadata,
    Column("id", Id, primary_key=True),  # random: an address that names it tells nothing
    Column("person_id", ForeignKey("people.id"), nullable=False),
    Column("source_id", ForeignKey("sources.id"), index=True),  # NULL: there was no such source
    Column("source", Text, nullable=False),  # its name, as somebody wrote it
    Column(
        "account", Text, nullable=False
    ),  # its id at the source; as it was asked for, until then
    # The reader token that the person holds by it, of one person at most. NULL: it is asked for.
    Column("token", Text, unique=True),
    Column("asked_at", Moment, nullable=False),
    Column("mapped_at", Moment),
    Column("mapped_by", Text),  # as the audit calls them
    Index(None, "person_id", "source"),
)
