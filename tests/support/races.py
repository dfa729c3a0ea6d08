"""Two changes of one database at once: the second one has begun, and waits, while the first is not committed."""

import threading
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import text

from backend.store.database import Database

_LONGEST = 20.0
_WAITING = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def race(
    database: Database, first: Callable[[Database], object], second: Callable[[], object]
) -> object:
    """Commit `first` while `second` is under way, and return what that returned, or the error that it raised.

    Args:
        first: changes the database that it is given, in the transaction of that.
        second: has a transaction of its own.
    """
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(second())
        except Exception as error:  # noqa: BLE001 (the test says which it expects)
            outcome.append(error)

    thread = threading.Thread(target=run)
    with database.transaction() as opened:
        first(opened)
        thread.start()
        _wait_until_it_waits(database, thread)
    thread.join(_LONGEST)
    assert not thread.is_alive()
    return outcome[0]


def _wait_until_it_waits(database: Database, thread: threading.Thread) -> None:
    """Return once it waits, or has ended. What comes out is the same if it begins later."""
    if database.engine.name == "sqlite":
        thread.join(0.1)
        return
    end = time.monotonic() + _LONGEST
    while thread.is_alive() and time.monotonic() < end:
        with database.engine.connect() as connection:
            waiting: Any = connection.scalar(_WAITING)
        if waiting:
            return
        time.sleep(0.01)
