"""The tables of web search, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import JSON, Boolean, Column, Integer, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import metadata

web_providers = Table(
    "web_providers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("credential", Text),  # encrypted by `credential_vault`
    Column("position", Integer, nullable=False),  # in the order in which they are asked, from 1
    Column("is_enabled", Boolean, nullable=False),
    Column("per_minute", Integer),  # searches at most; NULL: as its kind says
    Column("waits_until", Moment),  # it is not asked before; NULL: it may be
    Column("wait_reason", Text),
)

# One row.
web_rules = Table(
    "web_rules",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("is_on", Boolean, nullable=False),
    Column("allowed_domains", JSON, nullable=False),  # empty: all
    Column("blocked_domains", JSON, nullable=False),
    Column("keeps_internal_names", Boolean, nullable=False),  # out of queries
)
