"""The API tokens: what programs prove themselves with. Of each only a hash is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from backend.store.accounts.people import PERSON_COLUMNS, Person, read_person
from backend.store.database import Database
from backend.store.schema.tables import api_tokens, people
from connectors.errors import ConflictError, NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    id: int
    name: str
    digest: str
    scopes: Sequence[str]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    person_id: int | None
    """Whose it is; None for a service token."""


def add(
    database: Database,
    *,
    name: str,
    digest: str,
    scopes: Sequence[str],
    created_at: datetime,
    expires_at: datetime,
    person_id: int | None,
) -> ApiToken:
    """Add a token, and return it. Raises ConflictError: there is one of this name and owner."""
    row = {
        "name": name,
        "digest": digest,
        "scopes": list(scopes),
        "created_at": created_at,
        "expires_at": expires_at,
        "person_id": person_id,
    }
    try:
        with database.writing() as connection:
            added = connection.execute(insert(api_tokens).values(row).returning(api_tokens))
            return ApiToken(**added.mappings().one())
    except IntegrityError as error:
        raise ConflictError(
            f"There is an API token named {name!r} already. Revoke it, or choose another name."
        ) from error


def list_tokens(database: Database) -> list[ApiToken]:
    """Return all tokens by name, also those that have expired."""
    with database.reading() as connection:
        found = connection.execute(select(api_tokens).order_by(api_tokens.c.name, api_tokens.c.id))
        return [ApiToken(**row) for row in found.mappings()]


def list_of_person(database: Database, person_id: int) -> list[ApiToken]:
    """Return the tokens of a person by name, also those that have expired."""
    query = select(api_tokens).where(api_tokens.c.person_id == person_id)
    with database.reading() as connection:
        found = connection.execute(query.order_by(api_tokens.c.name))
        return [ApiToken(**row) for row in found.mappings()]


# One query, built once: it is asked by every request of a program.
_SELECT_WITH_OWNER = (
    select(api_tokens, *PERSON_COLUMNS)
    .join(people, isouter=True)
    .where(people.c.disabled_at.is_(None), api_tokens.c.digest == bindparam("digest"))
)


def find_with_owner(database: Database, digest: str) -> tuple[ApiToken, Person | None] | None:
    """Return a token and whose it is, unless that account is disabled."""
    with database.reading() as connection:
        row = connection.execute(_SELECT_WITH_OWNER, {"digest": digest}).one_or_none()
    if row is None:
        return None
    token = ApiToken(**dict(zip(api_tokens.c.keys(), row, strict=False)))
    return token, None if token.person_id is None else read_person(row)


def record_use(database: Database, token: ApiToken, now: datetime) -> None:
    with database.writing() as connection:
        used = update(api_tokens).where(api_tokens.c.id == token.id)
        connection.execute(used.values(last_used_at=now))


def remove_of_person(database: Database, person_id: int) -> int:
    """Remove all tokens of a person, and return how many there were."""
    with database.writing() as connection:
        return connection.execute(
            delete(api_tokens).where(api_tokens.c.person_id == person_id)
        ).rowcount


def remove(database: Database, name: str, person_id: int | None) -> list[str]:
    """Remove a token, and return the scopes that it had.

    Raises:
        NotFoundError: there is no token of this name and owner.
    """
    which = (api_tokens.c.name == name, api_tokens.c.person_id.is_not_distinct_from(person_id))
    with database.writing() as connection:
        removed = delete(api_tokens).where(*which).returning(api_tokens.c.scopes)
        scopes: list[str] | None = connection.scalar(removed)
    if scopes is None:
        raise NotFoundError(
            f"There is no API token named {name!r}. To list them: quarry tokens list"
        )
    return scopes
