"""Listens for PostgreSQL notifications of turns and research runs that other processes store.

One thread does it, over one connection, and only while somebody asks for them. Notifications are a hint: whoever follows polls as
well, since none come while the connection is lost, or through a pooler that lends it by the transaction.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection

from backend.store.chat.turn_news import CHANNEL, read_id
from backend.store.database import Database, translate_errors
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError

LOG = logging.getLogger("quarry.turns")
IDLE_SECONDS = 60.0
"""Without a request, after which the connection is given up."""
FIRST_PAUSE = 1.0
"""Seconds until a lost connection is tried again; twice as long each time."""
LONGEST_PAUSE = 30.0
STABLE_SECONDS = 60.0
"""Of a connection whose loss is a new one: one that is lost at once, again and again, is logged once, with growing pauses."""
_MOST_DOUBLINGS = 10
_LOOK = 0.5
"""Seconds between two checks whether anybody still asks."""


def choose_pause(failures: int) -> float:
    """Return the seconds until a lost connection is tried again, by how many tries have failed."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, _MOST_DOUBLINGS))


class TurnListener:
    """Safe to use from several threads; only `close` waits.

    Args:
        database: called each time.
        heard: called with the id of an answer or a research run of which more is stored.
        changed: called when listening begins and ends: nothing notifies of what was stored in between.
    """

    def __init__(
        self,
        database: Callable[[], Database],
        heard: Callable[[int | str], object],
        changed: Callable[[], object],
    ) -> None:
        self._database = database
        self._heard = heard
        self._changed = changed
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._requested = 0.0
        self._listening = threading.Event()
        self._closing = threading.Event()

    def ensure_listening(self) -> bool:
        """Ask for notifications for a while from now on, and return whether they come already. With SQLite they never do."""
        if self._database().engine.name != "postgresql":
            return False
        with self._lock:
            self._requested = time.monotonic()
            is_alive = self._thread is not None and self._thread.is_alive()
            if not is_alive and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="turn news", daemon=True)
                self._thread.start()
            return self._listening.is_set()

    def close(self, seconds: float) -> None:
        """End the thread; wait for that, but no longer than this."""
        with self._lock:
            self._closing.set()
            thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self) -> None:
        lost = 0
        while self._goes_on():
            began = time.monotonic()
            try:
                with self._connect() as connection:
                    if lost:
                        LOG.info("Listening for PostgreSQL notifications again.")
                    self._hear(connection)
            except (TemporarilyUnavailableError, ActionRequiredError) as error:
                if time.monotonic() - began > STABLE_SECONDS:
                    lost = 0
                if not lost:
                    LOG.warning(
                        "Cannot listen for PostgreSQL notifications; followers of answers poll instead: %s",
                        error,
                    )
                self._closing.wait(choose_pause(lost))
                lost += 1

    def _goes_on(self) -> bool:
        """Return whether the thread goes on. Where it does not, the next request needs another one."""
        with self._lock:
            if not self._is_wanted():
                self._thread = None
            return self._thread is not None

    def _is_wanted(self) -> bool:
        is_idle = time.monotonic() - self._requested >= IDLE_SECONDS
        return not is_idle and not self._closing.is_set()

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        """Yield a connection that listens.

        Raises:
            TemporarilyUnavailableError, ActionRequiredError: there is none.
        """
        with translate_errors(), self._database().engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            # It leaves the pool that requests share, for good.
            connection.detach()
            connection.exec_driver_sql(f"LISTEN {CHANNEL}")
            yield connection

    def _hear(self, connection: Connection) -> None:
        """Pass notifications on until nobody asks for them. Raises TemporarilyUnavailableError: the connection is lost."""
        driver: Any = connection.connection.dbapi_connection
        try:
            self._listening.set()
            self._changed()
            while self._is_wanted():
                for news in driver.notifies(timeout=_LOOK):
                    self._heard(read_id(news.payload))
        except connection.dialect.loaded_dbapi.Error as error:
            connection.invalidate(error)
            driver.close()
            words, pause = " ".join(str(error).split()), timedelta(seconds=FIRST_PAUSE)
            raise TemporarilyUnavailableError(words, retry_after=pause) from error
        finally:
            self._listening.clear()
            self._changed()
