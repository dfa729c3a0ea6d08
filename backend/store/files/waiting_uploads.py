"""Uploads that wait to be read, with their bytes: any process reads them, also after the one that took them has ended."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select, update

from backend.store.database import Database, exclusive
from backend.store.owner import ConversationOwner
from backend.store.schema.user_file_tables import user_files, waiting_uploads
from backend.store.sync.runs import Process, holder_columns, read_holder
from connectors.errors import TemporarilyUnavailableError

MOST_WAITING_BYTES = 200_000_000
"""Of all uploads that wait to be read, whosever they are."""
SHARES = 4
"""One person takes one of so many equal shares; where there are no accounts, the owner of the machine takes all."""
LEASE = timedelta(seconds=60)
"""It is renewed while its process reads. What a dead process of another machine was reading is free after this time."""
_FULL = "Too many files wait to be read. Add it again in a moment."
SHARE_IS_USED = (
    "{megabytes:,} MB of your files wait to be read: no more may wait. "
    "Add this one when some of them are read, or delete some that you do not need."
)
_PAUSE = timedelta(seconds=5)
_READING = "reading"
_SUM_SIZES = select(func.sum(user_files.c.size)).join(waiting_uploads)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingUpload:
    file_id: str
    owner: ConversationOwner
    name: str
    media_type: str
    document_id: str
    created_at: datetime
    data: bytes
    tries: int
    """This one included; those before it failed for a reason that may pass, or their process died."""


def keep(connection: Connection, owner: ConversationOwner, file_id: str, data: bytes) -> None:
    """Keep the bytes of a file until it is read, in the transaction that adds it, which is exclusive.

    Raises:
        TemporarilyUnavailableError: too much waits already, of the owner or of all.
    """
    _check_share(connection, owner, len(data))
    if (connection.scalar(_SUM_SIZES) or 0) + len(data) > MOST_WAITING_BYTES:
        raise TemporarilyUnavailableError(_FULL, _PAUSE)
    connection.execute(insert(waiting_uploads).values(file_id=file_id, data=data, tries=0))


def _check_share(connection: Connection, owner: ConversationOwner, size: int) -> None:
    """Check that an upload is within the share of its owner; one alone always is."""
    if owner.person_id is None:
        return
    own = _SUM_SIZES.where(user_files.c.person_id == owner.person_id)
    waiting = connection.scalar(own) or 0
    if waiting and waiting + size > MOST_WAITING_BYTES // SHARES:
        said = SHARE_IS_USED.format(megabytes=math.ceil(waiting / 1_000_000))
        raise TemporarilyUnavailableError(said, _PAUSE)


def remove(connection: Connection, file_id: str) -> None:
    connection.execute(delete(waiting_uploads).where(waiting_uploads.c.file_id == file_id))


def give_up(connection: Connection, file_id: str, tries: int) -> bool:
    """Remove an upload; False if it was removed already, or another process has claimed it since this try."""
    tried = delete(waiting_uploads).where(
        waiting_uploads.c.file_id == file_id, waiting_uploads.c.tries == tries
    )
    return bool(connection.execute(tried).rowcount)


def claim(
    database: Database, holder: Process, is_dead: Callable[[Process], bool]
) -> WaitingUpload | None:
    """Claim the upload that was tried least often, of these the oldest; None where none is free."""
    now = datetime.now(UTC)
    with database.writing() as connection:
        exclusive(connection)
        for row in connection.execute(_SELECT_HOLDERS).all():
            is_held = row.lease_until is not None and row.lease_until > now
            if is_held and not is_dead(read_holder(row)):
                continue
            taken = update(waiting_uploads).where(waiting_uploads.c.file_id == row.file_id)
            tries = {"tries": waiting_uploads.c.tries + 1, "lease_until": now + LEASE}
            connection.execute(taken.values(holder_columns(holder) | tries))
            return _read(connection, row.file_id)
    return None


def renew(database: Database, upload: WaitingUpload) -> None:
    """Renew the claim of an upload, unless another process has claimed it since, or it was given back."""
    claimed = update(waiting_uploads).where(
        waiting_uploads.c.file_id == upload.file_id,
        waiting_uploads.c.tries == upload.tries,
        waiting_uploads.c.lease_until.is_not(None),
    )
    with database.writing() as connection:
        connection.execute(claimed.values(lease_until=datetime.now(UTC) + LEASE))


def postpone(database: Database, upload: WaitingUpload) -> None:
    """Give a claimed upload back, to be tried again by whoever is next, unless another process has claimed it since."""
    given_back = update(waiting_uploads).where(
        waiting_uploads.c.file_id == upload.file_id, waiting_uploads.c.tries == upload.tries
    )
    with database.writing() as connection:
        connection.execute(given_back.values(lease_until=None))


_SELECT_HOLDERS = (
    select(
        waiting_uploads.c.file_id,
        waiting_uploads.c.host,
        waiting_uploads.c.process,
        waiting_uploads.c.process_started,
        waiting_uploads.c.lease_until,
    )
    .join(user_files)
    .where(user_files.c.status == _READING)
    .order_by(waiting_uploads.c.tries, user_files.c.created_at, user_files.c.id)
)


def _read(connection: Connection, file_id: str) -> WaitingUpload:
    query = select(user_files, waiting_uploads.c.data, waiting_uploads.c.tries)
    row = connection.execute(query.join(waiting_uploads).where(user_files.c.id == file_id)).one()
    return WaitingUpload(
        file_id=row.id,
        owner=ConversationOwner(row.person_id),
        name=row.name,
        media_type=row.media_type,
        document_id=row.document_id,
        created_at=row.created_at,
        data=row.data,
        tries=row.tries,
    )
