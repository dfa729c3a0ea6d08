"""Who writes people's files to the index, and who holds it still to switch to another one: never both at once.

Syncs of sources have runs for this; files have none.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from sqlalchemy import Connection, delete, insert, select, update

from backend.store.database import Database, exclusive
from backend.store.schema.user_file_tables import index_claims
from backend.store.sync.runs import Process, holder_columns, read_holder
from connectors.errors import TemporarilyUnavailableError

ClaimKind: TypeAlias = Literal["write", "hold"]
IsDead: TypeAlias = Callable[[Process], bool]
LEASE = timedelta(seconds=60)
"""It is renewed while its process works. A claim of a process of this machine ends with it, one of another after this time."""
_SOON = timedelta(seconds=5)
_WRITING = "People's files are being indexed."
_HELD = "The index is being rebuilt or moved."


class ClaimLostError(TemporarilyUnavailableError):
    """The claim ended before its work, such as while the machine slept: another process may have switched the index."""

    def __init__(self) -> None:
        super().__init__("The index is no longer held for this.", _SOON)


@contextmanager
def write(database: Database, holder: Process, is_dead: IsDead) -> Iterator[Callable[[], None]]:
    """Write files to the index during the block; yield what renews the claim.

    Raises:
        TemporarilyUnavailableError: the index is held.
        ClaimLostError: at the end of the block: what it wrote may be in an index that is no longer used.
    """
    claim = _claim(database, "write", holder, is_dead)
    try:
        yield lambda: _renew(database, claim)
    finally:
        is_kept = _release(database, claim)
    if not is_kept:
        raise ClaimLostError


@contextmanager
def hold(database: Database, holder: Process, is_dead: IsDead) -> Iterator[Callable[[], None]]:
    """Hold off writes of files during the block; yield what renews the hold.

    Raises:
        TemporarilyUnavailableError: files are being written, or another process holds the index.
    """
    claim = _claim(database, "hold", holder, is_dead)
    try:
        yield lambda: _renew(database, claim)
    finally:
        _release(database, claim)


def _claim(database: Database, kind: ClaimKind, holder: Process, is_dead: IsDead) -> int:
    now = datetime.now(UTC)
    with database.writing() as connection:
        exclusive(connection)
        for other in _list_live(connection, now, is_dead):
            if kind == "hold" or other == "hold":
                raise TemporarilyUnavailableError(_HELD if other == "hold" else _WRITING, _SOON)
        row = holder_columns(holder) | {"kind": kind, "lease_until": now + LEASE}
        made = insert(index_claims).values(row).returning(index_claims.c.id)
        return int(connection.execute(made).scalar_one())


def _list_live(connection: Connection, now: datetime, is_dead: IsDead) -> list[ClaimKind]:
    """Return the claims of live processes; those of dead ones are removed."""
    rows = connection.execute(select(index_claims)).all()
    ended = [row.id for row in rows if row.lease_until <= now or is_dead(read_holder(row))]
    if ended:
        connection.execute(delete(index_claims).where(index_claims.c.id.in_(ended)))
    return [row.kind for row in rows if row.id not in ended]


def _renew(database: Database, claim: int) -> None:
    """Extend the lease of a claim. Raises ClaimLostError: it is not there any more."""
    mine = update(index_claims).where(index_claims.c.id == claim)
    with database.writing() as connection:
        until = datetime.now(UTC) + LEASE
        if not connection.execute(mine.values(lease_until=until)).rowcount:
            raise ClaimLostError


def _release(database: Database, claim: int) -> bool:
    """End a claim; False if it is lost already."""
    mine = delete(index_claims).where(index_claims.c.id == claim)
    with database.writing() as connection:
        return bool(connection.execute(mine).rowcount)
