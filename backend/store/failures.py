"""The documents that could not be read or indexed, and why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Insert, func, select
from sqlalchemy.dialects import postgresql, sqlite

from backend.store.database import Database
from backend.store.tables import failures, sources
from indexing.ledger import Failed

_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    source: str
    document_id: str
    item: str
    """The name a person knows it by."""
    link: str | None
    reason: str
    tries: int
    first_at: datetime
    last_at: datetime


def listing(database: Database) -> Iterator[Failure]:
    """All failures by document id: for the owner of the machine only."""
    after = ""
    while page := _page(database, after):
        yield from page
        after = page[-1].document_id


def counts(database: Database) -> Mapping[str, int]:
    """How many failures each source has; those without any are left out."""
    count = (
        select(sources.c.name, func.count())
        .join(failures, failures.c.source_id == sources.c.id)
        .group_by(sources.c.name)
    )
    with database.reading() as connection:
        return dict(connection.execute(count).all())


def record(
    connection: Connection, failed: Sequence[Failed], source_ids: Mapping[str, int], now: datetime
) -> None:
    """Enter failures, or count one more try."""
    rows = [
        {
            "document_id": failure.document_id,
            "source_id": source_ids[failure.source],
            "item": failure.item,
            "link": failure.link,
            "reason": failure.reason,
            "tries": 1,
            "first_at": now,
            "last_at": now,
        }
        for failure in failed
    ]
    if rows:
        connection.execute(_counting_insert(connection), rows)


def _counting_insert(connection: Connection) -> Insert:
    make = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = make(failures)
    again = {name: statement.excluded[name] for name in ("item", "link", "reason", "last_at")}
    return statement.on_conflict_do_update(
        index_elements=["document_id"], set_={**again, "tries": failures.c.tries + 1}
    )


def _page(database: Database, after: str) -> list[Failure]:
    query = (
        select(failures, sources.c.name.label("source"))
        .join(sources)
        .where(failures.c.document_id > after)
        .order_by(failures.c.document_id)
        .limit(_PAGE)
    )
    with database.reading() as connection:
        rows = connection.execute(query).all()
    return [
        Failure(
            source=row.source,
            document_id=row.document_id,
            item=row.item,
            link=row.link,
            reason=row.reason,
            tries=row.tries,
            first_at=row.first_at,
            last_at=row.last_at,
        )
        for row in rows
    ]
