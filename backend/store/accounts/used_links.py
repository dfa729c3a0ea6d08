"""The links of the machine that were opened, by the hash of their code: each lets one browser in."""

from datetime import datetime

from sqlalchemy import delete

from backend.store.database import Database, inserting
from backend.store.schema.tables import used_links


def use(database: Database, digest: str, now: datetime, expired: datetime) -> bool:
    """Record that a link was opened, and return whether it was not before; of several at once, one is the first.

    Args:
        expired: links that were opened before then are forgotten: they are not valid any more.
    """
    with database.writing() as connection:
        connection.execute(delete(used_links).where(used_links.c.used_at < expired))
        added = inserting(connection, used_links).on_conflict_do_nothing()
        row = added.values(digest=digest, used_at=now).returning(used_links.c.digest)
        return connection.scalar(row) is not None
