"""What people granted to programs by OAuth: one code, one access token and one refresh token at a time. All are stored as hashes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, bindparam, delete, insert, select, update

from backend.store.accounts.people import PERSON_COLUMNS, Person, read_person
from backend.store.database import Database
from backend.store.schema.oauth_tables import oauth_clients, oauth_grants
from backend.store.schema.tables import people
from connectors.errors import NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthGrant:
    id: int
    client_id: str
    person_id: int
    resource: str
    """The audience of its tokens."""
    scopes: Sequence[str]
    redirect_uri: str
    code_digest: str
    code_challenge: str
    created_at: datetime
    redeemed_at: datetime | None
    access_digest: str | None
    access_scopes: Sequence[str] | None
    access_expires_at: datetime | None
    family_digest: str | None
    """Of what all its refresh tokens begin with."""
    refresh_digest: str | None
    ends_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGrant:
    client_id: str
    person_id: int
    resource: str
    scopes: Sequence[str]
    redirect_uri: str
    code_digest: str
    code_challenge: str
    created_at: datetime
    ends_at: datetime
    """When the code is not valid any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantTokens:
    """The hashes of the tokens that a grant has from now on."""

    access_digest: str
    access_scopes: Sequence[str]
    access_expires_at: datetime
    family_digest: str | None
    refresh_digest: str | None
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class ConnectedProgram:
    """A grant whose code was exchanged, and what its program calls itself."""

    grant: OAuthGrant
    name: str


def add(database: Database, grant: NewGrant) -> None:
    row = {name: getattr(grant, name) for name in NewGrant.__dataclass_fields__}
    with database.writing() as connection:
        connection.execute(insert(oauth_grants).values(row | {"scopes": list(grant.scopes)}))


def find_by_code(database: Database, digest: str) -> OAuthGrant | None:
    return _find(database, oauth_grants.c.code_digest == digest)


def find_by_family(database: Database, digest: str) -> OAuthGrant | None:
    return _find(database, oauth_grants.c.family_digest == digest)


def find_by_access_token(database: Database, digest: str) -> OAuthGrant | None:
    return _find(database, oauth_grants.c.access_digest == digest)


def _find(database: Database, which: ColumnElement[bool]) -> OAuthGrant | None:
    with database.reading() as connection:
        row = connection.execute(select(oauth_grants).where(which)).mappings().one_or_none()
    return None if row is None else OAuthGrant(**row)


# One query, built once: it is asked by every request of a program.
_SELECT_WITH_PERSON = (
    select(oauth_grants, *PERSON_COLUMNS)
    .join(people)
    .where(people.c.disabled_at.is_(None), oauth_grants.c.access_digest == bindparam("digest"))
)


def find_with_person(database: Database, digest: str) -> tuple[OAuthGrant, Person] | None:
    """Return the grant of an access token and the person whose it is, unless the account is disabled."""
    with database.reading() as connection:
        row = connection.execute(_SELECT_WITH_PERSON, {"digest": digest}).one_or_none()
    if row is None:
        return None
    grant = dict(zip(oauth_grants.c.keys(), row, strict=False))
    return OAuthGrant(**grant), read_person(row)


def redeem(database: Database, grant_id: int, tokens: GrantTokens, now: datetime) -> bool:
    """Give a grant its first tokens, and return whether its code was not redeemed before.

    Of several requests at once, one redeems it.
    """
    which = (oauth_grants.c.id == grant_id, oauth_grants.c.redeemed_at.is_(None))
    return _give(database, which, tokens, redeemed_at=now)


def rotate(database: Database, grant_id: int, refresh_digest: str, tokens: GrantTokens) -> bool:
    """Replace the tokens of a grant, and return whether its refresh token was still this one.

    Of several requests at once, one replaces it.
    """
    which = (oauth_grants.c.id == grant_id, oauth_grants.c.refresh_digest == refresh_digest)
    return _give(database, which, tokens)


def _give(
    database: Database,
    which: Sequence[ColumnElement[bool]],
    tokens: GrantTokens,
    **also: datetime,
) -> bool:
    row = {name: getattr(tokens, name) for name in GrantTokens.__dataclass_fields__}
    row |= {"access_scopes": list(tokens.access_scopes), **also}
    with database.writing() as connection:
        given = connection.execute(update(oauth_grants).where(*which).values(row))
        return given.rowcount == 1


def record_use(database: Database, grant_id: int, now: datetime) -> None:
    used = update(oauth_grants).where(oauth_grants.c.id == grant_id)
    with database.writing() as connection:
        connection.execute(used.values(last_used_at=now))


def list_programs(database: Database, now: datetime, person_id: int) -> list[ConnectedProgram]:
    """Return what a person granted and has not ended, the last granted first."""
    query = (
        select(oauth_grants, oauth_clients.c.name.label("client_name"))
        .join(oauth_clients)
        .where(
            oauth_grants.c.person_id == person_id,
            oauth_grants.c.redeemed_at.is_not(None),
            oauth_grants.c.ends_at > now,
        )
        .order_by(oauth_grants.c.created_at.desc(), oauth_grants.c.id.desc())
    )
    with database.reading() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    return [ConnectedProgram(name=row.pop("client_name"), grant=OAuthGrant(**row)) for row in rows]


def remove(database: Database, grant_id: int, person_id: int) -> OAuthGrant:
    """Remove a grant of a person, and return it. Raises NotFoundError: they have none of this id."""
    which = (oauth_grants.c.id == grant_id, oauth_grants.c.person_id == person_id)
    with database.writing() as connection:
        removed = delete(oauth_grants).where(*which).returning(oauth_grants)
        row = connection.execute(removed).mappings().one_or_none()
    if row is None:
        raise NotFoundError("This program is not connected to the account.")
    return OAuthGrant(**row)


def remove_if_there(database: Database, grant_id: int) -> bool:
    """Remove a grant, and return whether it was there."""
    with database.writing() as connection:
        removed = connection.execute(delete(oauth_grants).where(oauth_grants.c.id == grant_id))
        return removed.rowcount == 1


def remove_of_person(database: Database, person_id: int) -> int:
    """Remove all grants of a person, and return how many there were."""
    with database.writing() as connection:
        return connection.execute(
            delete(oauth_grants).where(oauth_grants.c.person_id == person_id)
        ).rowcount


def remove_ended(database: Database, now: datetime) -> None:
    with database.writing() as connection:
        connection.execute(delete(oauth_grants).where(oauth_grants.c.ends_at <= now))
