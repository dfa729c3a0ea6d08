"""The tables of the programs that people connected by OAuth, beside those of `tables.py`; `migrations/` creates and changes them."""

from sqlalchemy import JSON, Column, ForeignKey, Index, Integer, Table, Text

from backend.store.database import Moment
from backend.store.schema.tables import metadata

oauth_clients = Table(
    "oauth_clients",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),  # as the program says; nobody has verified it
    Column("redirect_uris", JSON, nullable=False),
    Column("secret_digest", Text),  # SHA-256; NULL: a public client (RFC 6749, 2.1)
    Column("auth_method", Text, nullable=False),
    Column("grant_types", JSON, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("network", Text, nullable=False),  # from where it was registered
    Column("created_at", Moment, nullable=False),
    Column("connected_at", Moment),  # when somebody last connected it; NULL: nobody has
    Index(None, "network", "created_at"),
    Index(None, "created_at"),
)

# One code, one access token and one refresh token at a time: a grant is one row.
oauth_grants = Table(
    "oauth_grants",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("client_id", ForeignKey("oauth_clients.id", ondelete="CASCADE"), nullable=False),
    Column("person_id", ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    Column("resource", Text, nullable=False),  # the audience of its tokens (RFC 8707)
    Column("scopes", JSON, nullable=False),
    Column("redirect_uri", Text, nullable=False),
    Column("code_digest", Text, nullable=False, unique=True),  # SHA-256, as all below
    Column("code_challenge", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("redeemed_at", Moment),  # NULL: the code was not exchanged yet
    Column("access_digest", Text, unique=True),
    Column("access_scopes", JSON),
    Column("access_expires_at", Moment),
    Column("family_digest", Text, unique=True),  # what all refresh tokens of it begin with
    Column("refresh_digest", Text),  # of the one that is valid
    Column("ends_at", Moment, nullable=False),  # when nothing of it is valid any more
    Column("last_used_at", Moment),
    Index(None, "person_id"),
    Index(None, "client_id"),
    Index(None, "ends_at"),
    # Ids are never reused: a page may name one that is gone.
    sqlite_autoincrement=True,
)
