"""The API tokens: what programs prove themselves with. Of each only a hash is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from backend.store.database import Database
from backend.store.tables import api_tokens
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


def add(
    database: Database,
    *,
    name: str,
    digest: str,
    scopes: Sequence[str],
    created_at: datetime,
    expires_at: datetime,
) -> ApiToken:
    """Raises ConflictError: there is a token of this name."""
    row = {
        "name": name,
        "digest": digest,
        "scopes": list(scopes),
        "created_at": created_at,
        "expires_at": expires_at,
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
        found = connection.execute(select(api_tokens).order_by(api_tokens.c.name))
        return [ApiToken(**row) for row in found.mappings()]


def find_by_digest(database: Database, digest: str) -> ApiToken | None:
    with database.reading() as connection:
        query = select(api_tokens).where(api_tokens.c.digest == digest)
        row = connection.execute(query).mappings().one_or_none()
    return ApiToken(**row) if row else None


def record_use(database: Database, token: ApiToken, now: datetime) -> None:
    with database.writing() as connection:
        used = update(api_tokens).where(api_tokens.c.id == token.id)
        connection.execute(used.values(last_used_at=now))


def remove(database: Database, name: str) -> None:
    """Raises NotFoundError: there is no token of this name."""
    with database.writing() as connection:
        removed = connection.execute(delete(api_tokens).where(api_tokens.c.name == name))
    if not removed.rowcount:
        raise NotFoundError(
            f"There is no API token named {name!r}. To list them: quarry tokens list"
        )
