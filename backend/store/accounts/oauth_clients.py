"""The programs that are registered as clients of OAuth. Of a secret only a hash is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, delete, func, insert, or_, select, update

from backend.store.database import Database
from backend.store.schema.oauth_tables import oauth_clients, oauth_grants
from connectors.errors import NotFoundError
from indexing.text.normalization import is_storable


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    id: str
    name: str
    """As the program says; nobody has verified it."""
    redirect_uris: Sequence[str]
    secret_digest: str | None
    """None: a public client, which can keep no secret."""
    auth_method: str
    grant_types: Sequence[str]
    scopes: Sequence[str]
    network: str
    created_at: datetime
    connected_at: datetime | None
    """When somebody last connected it."""


@dataclass(frozen=True, slots=True)
class UsedClient:
    client: OAuthClient
    grants: int
    """How many grants it has."""


def add(database: Database, client: OAuthClient) -> None:
    row = {column: getattr(client, column) for column in OAuthClient.__dataclass_fields__}
    lists = {name: list(row[name]) for name in ("redirect_uris", "grant_types", "scopes")}
    with database.writing() as connection:
        connection.execute(insert(oauth_clients).values(row | lists))


def find(database: Database, client_id: str) -> OAuthClient | None:
    if not is_storable(client_id):
        return None
    query = select(oauth_clients).where(oauth_clients.c.id == client_id)
    with database.reading() as connection:
        row = connection.execute(query).mappings().one_or_none()
    return None if row is None else OAuthClient(**row)


def list_used(database: Database) -> list[UsedClient]:
    """Return all clients, the last registered first."""
    grants = select(func.count()).where(oauth_grants.c.client_id == oauth_clients.c.id)
    counted = select(oauth_clients, grants.scalar_subquery().label("grants"))
    query = counted.order_by(oauth_clients.c.created_at.desc(), oauth_clients.c.id)
    with database.reading() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    return [UsedClient(grants=row.pop("grants"), client=OAuthClient(**row)) for row in rows]


def record_connection(database: Database, client_id: str, now: datetime) -> bool:
    """Record that somebody connected a client, and return whether there is one of this id."""
    connected = update(oauth_clients).where(oauth_clients.c.id == client_id)
    with database.writing() as connection:
        return connection.execute(connected.values(connected_at=now)).rowcount == 1


def count_registered(database: Database, network: str, since: datetime) -> int:
    """Return how many clients a network has registered."""
    which = (oauth_clients.c.network == network, oauth_clients.c.created_at > since)
    with database.reading() as connection:
        return connection.scalar(select(func.count()).where(*which)) or 0


def remove(database: Database, client_id: str) -> None:
    """Remove a client with all its grants. Raises NotFoundError: there is none of this id."""
    which = oauth_clients.c.id == (client_id if is_storable(client_id) else "")
    with database.writing() as connection:
        removed = connection.execute(delete(oauth_clients).where(which))
    if not removed.rowcount:
        raise NotFoundError("There is no such program.")


def remove_unused(database: Database, never_connected: datetime, not_connected: datetime) -> None:
    """Remove clients without a grant that nobody ever connected, and those that nobody connected lately.

    Args:
        never_connected: when those were registered at the latest.
        not_connected: when the others were last connected at the latest.
    """
    is_unused = oauth_clients.c.id.not_in(select(oauth_grants.c.client_id))
    was_never = and_(
        oauth_clients.c.connected_at.is_(None), oauth_clients.c.created_at <= never_connected
    )
    with database.writing() as connection:
        is_old = or_(was_never, oauth_clients.c.connected_at <= not_connected)
        connection.execute(delete(oauth_clients).where(is_unused, is_old))


def remove_oldest_unused(database: Database, kept: int) -> None:
    """Remove clients that nobody ever connected, but for so many of the last registered."""
    unused = select(oauth_clients.c.id).where(oauth_clients.c.connected_at.is_(None))
    last = unused.order_by(oauth_clients.c.created_at.desc(), oauth_clients.c.id).offset(kept)
    with database.writing() as connection:
        ids = connection.scalars(last.limit(1_000)).all()
        if ids:
            connection.execute(delete(oauth_clients).where(oauth_clients.c.id.in_(ids)))
