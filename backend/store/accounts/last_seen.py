"""When people were last seen: in a session, at a sign-in, or by a program with a token of theirs."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import func, select, union_all

from backend.store.database import Database
from backend.store.schema.tables import api_tokens, devices, sessions


def find_last_seen(database: Database, person_ids: Collection[int]) -> dict[int, datetime]:
    """Return the last moment by person; one who was never seen is left out."""
    seen = union_all(
        *(
            select(moment.table.c.person_id, moment.label("at")).where(
                moment.table.c.person_id.in_(person_ids), moment.is_not(None)
            )
            for moment in (
                sessions.c.last_used_at,
                devices.c.seen_at,
                api_tokens.c.last_used_at,
            )
        )
    ).subquery()
    query = select(seen.c.person_id, func.max(seen.c.at)).group_by(seen.c.person_id)
    with database.reading() as connection:
        return dict(connection.execute(query).all())
