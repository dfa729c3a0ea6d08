"""Documents that a source did not list any more: what a deletion would remove, for the owner of the machine only.

Those whose ids begin with one of the prefixes `kept` need not be listed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, func, select

from backend.store.database import Database
from backend.store.schema.tables import documents
from backend.store.sync.runs import Run
from backend.store.sync.sources import select_source_id

_PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingDocument:
    id: str
    title: str
    link: str


def list_missing(
    database: Database, run: Run, kept: Sequence[str], after: str = "", limit: int = _PAGE
) -> list[MissingDocument]:
    """Return documents that the listing of this run did not contain, by id, from above the id `after`."""
    query = (
        select(documents.c.id, documents.c.title, documents.c.link)
        .where(*_is_missing(run, kept), documents.c.id > after)
        .order_by(documents.c.id)
        .limit(limit)
    )
    with database.reading() as connection:
        return [MissingDocument(**row) for row in connection.execute(query).mappings()]


def iterate_missing(database: Database, run: Run, kept: Sequence[str]) -> Iterator[MissingDocument]:
    """Yield all of them."""
    after = ""
    while page := list_missing(database, run, kept, after):
        yield from page
        after = page[-1].id


def find_last_listing(database: Database, run: Run, kept: Sequence[str]) -> int:
    """Return the number of the last listing that still contained one of them; 0 if none did."""
    query = select(func.max(documents.c.listing)).where(*_is_missing(run, kept))
    with database.reading() as connection:
        return connection.scalar(query) or 0


def count_below(database: Database, run: Run, place: str) -> int:
    """Count the documents of the source whose links begin with this place, missing or not."""
    begins = func.substr(documents.c.link, 1, len(place)) == place
    query = select(func.count()).where(
        documents.c.source_id == select_source_id(run.source), begins
    )
    with database.reading() as connection:
        return connection.scalar(query) or 0


def _is_missing(run: Run, kept: Sequence[str]) -> list[ColumnElement[bool]]:
    """Return the conditions of what a run did not list.

    Numbers of listings grow. What was indexed after the listing was there again, or is new.
    """
    conditions: list[ColumnElement[bool]] = [
        documents.c.source_id == select_source_id(run.source),
        documents.c.listing < run.listing,
        *(func.substr(documents.c.id, 1, len(prefix)) != prefix for prefix in kept),
    ]
    if run.finished_at is not None:
        conditions.append(documents.c.indexed_at <= run.finished_at)
    return conditions
