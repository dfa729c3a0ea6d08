"""Stores what the turns of this process write, in portions; renews their leases; stops those that are asked to stop.

One thread does it for all turns, and only while there are some.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from backend.conversations.running_turn import RunningTurn
from backend.conversations.turn_events import INTERRUPTED, STOPPED
from backend.store import turns
from backend.store.database import Database
from backend.store.turns import LEASE
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError

PAUSE = 0.15
"""Seconds at least between two portions."""
LOOK = 0.5
"""Seconds between two looks at which turns are asked to stop."""
_RENEW = LEASE.total_seconds() / 3


class TurnKeeper:
    """
    Args:
        database: called each time.
        stored: called with the id of an answer of which more is stored.
    """

    def __init__(self, database: Callable[[], Database], stored: Callable[[int], object]) -> None:
        self._database = database
        self._stored = stored
        self._changed = threading.Condition()
        self._turns: dict[int, RunningTurn] = {}
        self._renewed: dict[int, float] = {}
        self._looked = 0.0
        self._has_news = False
        self._thread: threading.Thread | None = None

    def add(self, turn: RunningTurn) -> None:
        with self._changed:
            self._turns[turn.message_id] = turn
            self._renewed[turn.message_id] = time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._keep, name="turns", daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """Store what a turn has written, as soon as the next portion is due."""
        with self._changed:
            self._has_news = True
            self._changed.notify_all()

    def holds(self, message_id: int) -> bool:
        with self._changed:
            return message_id in self._turns

    def stop(self, message_id: int) -> None:
        """Stop a turn, if this process runs it."""
        with self._changed:
            turn = self._turns.get(message_id)
        if turn is not None:
            turn.break_off("stopped", STOPPED)
            self.wake()

    def interrupt_all(self, seconds: float) -> bool:
        """End all turns, as the process does; whether all of them are stored after so many seconds."""
        for turn in self._list():
            turn.break_off("interrupted", INTERRUPTED)
        self.wake()
        with self._changed:
            return self._changed.wait_for(lambda: not self._turns, seconds)

    def _keep(self) -> None:
        while self._wait():
            # A lease outlasts the usual outage of the database: what was not stored now is so later.
            with suppress(TemporarilyUnavailableError, ActionRequiredError):
                self._store_all()
                self._look()
            time.sleep(PAUSE)

    def _wait(self) -> bool:
        """Wait for news; whether there are turns. Where there are none, the next one needs another thread."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_news or not self._turns, LOOK)
            self._has_news = False
            if not self._turns:
                self._thread = None
            return bool(self._turns)

    def _store_all(self) -> None:
        for turn in self._list():
            if (unstored := turn.unstored()) is None:
                continue
            message_id = turn.message_id
            now = datetime.now(UTC)
            if not turns.store(
                self._database(), unstored.portion, unstored.ending, message_id, now
            ):
                self._give_up(turn)
                continue
            turn.confirm(unstored)
            self._renewed[message_id] = time.monotonic()
            if unstored.ending is not None:
                self._remove(turn)
            self._stored(message_id)

    def _look(self) -> None:
        """Stop what is asked to stop or was ended by others, and renew the leases of turns that write nothing."""
        running = self._list()
        if time.monotonic() - self._looked < LOOK or not running:
            return
        asked = turns.find_stops(self._database(), [turn.message_id for turn in running])
        for turn in running:
            match asked.get(turn.message_id):
                case None:
                    self._give_up(turn)
                case True:
                    turn.break_off("stopped", STOPPED)
                    self.wake()
                case False:
                    self._renew(turn)
        self._looked = time.monotonic()

    def _renew(self, turn: RunningTurn) -> None:
        if time.monotonic() - self._renewed[turn.message_id] < _RENEW:
            return
        turns.renew(self._database(), turn.message_id, datetime.now(UTC))
        self._renewed[turn.message_id] = time.monotonic()

    def _give_up(self, turn: RunningTurn) -> None:
        turn.abandon()
        self._remove(turn)
        self._stored(turn.message_id)

    def _list(self) -> list[RunningTurn]:
        with self._changed:
            return list(self._turns.values())

    def _remove(self, turn: RunningTurn) -> None:
        with self._changed:
            del self._turns[turn.message_id]
            del self._renewed[turn.message_id]
            self._changed.notify_all()
