"""Sign-ins that failed, each by what it is counted under: an account, an address, a device."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import delete, func, insert, select

from backend.store.database import Database
from backend.store.schema.tables import sign_in_failures


def add(database: Database, keys: Collection[str], now: datetime) -> list[int]:
    """Record a failure under each key, and return the ids of the rows."""
    rows = [{"key": key, "at": now} for key in keys]
    with database.writing() as connection:
        added = insert(sign_in_failures).returning(sign_in_failures.c.id)
        return list(connection.scalars(added, rows))


def count(database: Database, keys: Collection[str], since: datetime) -> Mapping[str, int]:
    """Return the number of failures since then under each key that has any."""
    query = (
        select(sign_in_failures.c.key, func.count().label("number"))
        .where(sign_in_failures.c.key.in_(keys), sign_in_failures.c.at > since)
        .group_by(sign_in_failures.c.key)
    )
    with database.reading() as connection:
        return {row.key: row.number for row in connection.execute(query)}


def remove(database: Database, ids: Collection[int]) -> None:
    with database.writing() as connection:
        connection.execute(delete(sign_in_failures).where(sign_in_failures.c.id.in_(ids)))


def remove_before(database: Database, moment: datetime) -> None:
    with database.writing() as connection:
        connection.execute(delete(sign_in_failures).where(sign_in_failures.c.at <= moment))
