"""The devices from which people have signed in before. Of each cookie only a hash is stored."""

from datetime import datetime

from sqlalchemy import delete, exists, select

from backend.store.database import Database, upsert
from backend.store.schema.tables import devices


def is_known(database: Database, person_id: int, digest: str) -> bool:
    of_person = (devices.c.person_id == person_id, devices.c.digest == digest)
    with database.reading() as connection:
        return bool(connection.scalar(select(exists().where(*of_person))))


def record(database: Database, person_id: int, digest: str, now: datetime) -> None:
    row = {"person_id": person_id, "digest": digest, "seen_at": now}
    with database.writing() as connection:
        upsert(connection, devices, [row])


def remove_unseen(database: Database, since: datetime) -> None:
    with database.writing() as connection:
        connection.execute(delete(devices).where(devices.c.seen_at < since))
