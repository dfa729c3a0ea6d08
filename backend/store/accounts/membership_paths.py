"""By which memberships somebody comes to hold a token; read to explain, never to decide who may read."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from backend.store.database import Database, select_texts
from backend.store.schema.tables import memberships, source_groups


@dataclass(frozen=True, slots=True)
class Membership:
    member: str
    token: str
    """Of the group or scope."""
    is_pending: bool
    """It counts once the permission sync that found it has compared all documents."""
    since: datetime | None
    """When it began, or was first listed; None if that was not recorded yet."""


def list_above(database: Database, own: Collection[str]) -> list[Membership]:
    """Return the memberships of these tokens, then those of their groups, and so on; pending ones too."""
    found: list[Membership] = []
    seen, members = set(own), set(own)
    with database.reading() as connection:
        while members:
            level = _read_level(connection, members)
            found += level
            members = {each.token for each in level} - seen
            seen |= members
    return found


def _read_level(connection: Connection, members: Iterable[str]) -> list[Membership]:
    texts = select_texts(connection.dialect.name, members)
    columns = memberships.c
    query = select(columns.member, columns.token, columns.pending, columns.since)
    ordered = query.where(columns.member.in_(texts)).order_by(
        columns.pending, columns.token, columns.member
    )
    rows = connection.execute(ordered)
    return [Membership(row.member, row.token, bool(row.pending), row.since) for row in rows]


def name_groups(database: Database, tokens: Collection[str]) -> Mapping[str, str]:
    """Return the names by which people at the sources know these groups and scopes; others are absent."""
    query = select(source_groups.c.token, source_groups.c.name)
    named = query.where(
        source_groups.c.token.in_(select_texts(database.engine.name, tokens)),
        source_groups.c.name != "",
    )
    with database.reading() as connection:
        return {row.token: row.name for row in connection.execute(named)}
