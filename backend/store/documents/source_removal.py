"""The removal of a source, and what becomes of the document sets with rules of it."""

from sqlalchemy import Connection, select, update

from backend.store.database import Database, exclusive
from backend.store.documents import document_sets as sets
from backend.store.schema.document_set_tables import document_set_rules, document_sets
from backend.store.sync import sources
from backend.store.sync.sources import Source


def list_sets_losing_rules(database: Database, source: Source) -> list[str]:
    """Return the names of the sets that lose rules with a source."""
    query = (
        select(document_sets.c.name)
        .join(document_set_rules, document_set_rules.c.set_id == document_sets.c.id)
        .where(document_set_rules.c.source_id == source.id, sets.STANDS)
        .distinct()
    )
    with database.reading() as connection:
        return sorted(connection.scalars(query))


def remove_source(database: Database, name: str) -> None:
    """Delete a source without documents, as `sources.remove`, and have the documents of its sets counted again."""
    source = sources.find(database, name)
    with database.transaction() as within:
        with within.writing() as connection:
            exclusive(connection)
            _release(connection, source)
        sources.remove(within, name)


def _release(connection: Connection, source: Source) -> None:
    of_source = document_set_rules.c.source_id == source.id
    used = select(document_set_rules.c.set_id).where(of_source).distinct()
    ids = list(connection.scalars(used))
    if not ids:
        return
    sets.make_all_due(connection, ids)
    others = select(document_set_rules.c.set_id).where(
        document_set_rules.c.source_id.is_distinct_from(source.id), sets.STANDS
    )
    # Whoever looks after a set does so by the sources of its rules: without any, nobody but admins would.
    emptied = document_sets.c.id.in_(ids) & document_sets.c.id.not_in(others)
    connection.execute(update(document_sets).where(emptied).values(left_to=source.owner_id))
