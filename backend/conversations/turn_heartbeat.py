"""Stores what the turns of this process write, in portions; renews their leases; stops those that are asked to stop.

One thread does it for all turns, and only while there are some.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.conversations.running_turn import RunningTurn, Unstored
from backend.conversations.turn_events import INTERRUPTED, STOPPED
from backend.store.chat import turns
from backend.store.chat.turns import Progress, TurnState
from backend.store.database import Database
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError

LOG = logging.getLogger("quarry.turns")
PAUSE = 0.25
"""Seconds at least between two portions."""
LOOK = 0.5
"""Seconds until a turn that writes nothing is looked at again: whether it is asked to stop. That renews its lease."""


@dataclass(frozen=True, slots=True)
class _Due:
    """A turn that is to be stored, or to be looked at."""

    turn: RunningTurn
    unstored: Unstored | None

    @property
    def progress(self) -> Progress:
        message_id = self.turn.message_id
        if self.unstored is None:
            return Progress(message_id, None, None)
        return Progress(message_id, self.unstored.portion, self.unstored.ending)


class TurnHeartbeat:
    """The turns of this process, and the thread that stores what they write.

    Args:
        database: called each time.
        stored: called with the id of an answer of which more is stored.
    """

    def __init__(self, database: Callable[[], Database], stored: Callable[[int], object]) -> None:
        self._database = database
        self._stored = stored
        self._changed = threading.Condition()
        self._turns: dict[int, RunningTurn] = {}
        self._looked: dict[int, float] = {}
        """When it was last stored, or looked at."""
        self._has_news = False
        self._thread: threading.Thread | None = None

    def add(self, turn: RunningTurn) -> None:
        with self._changed:
            self._turns[turn.message_id] = turn
            self._looked[turn.message_id] = time.monotonic()
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

    def count(self) -> int:
        with self._changed:
            return len(self._turns)

    def stop(self, message_id: int) -> None:
        """Stop a turn, if this process runs it."""
        with self._changed:
            turn = self._turns.get(message_id)
        if turn is not None:
            self._break_off(turn)

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
                self._store_due()
            time.sleep(PAUSE)

    def _wait(self) -> bool:
        """Wait for news; whether there are turns. Where there are none, the next one needs another thread."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_news or not self._turns, LOOK)
            self._has_news = False
            if not self._turns:
                self._thread = None
            return bool(self._turns)

    def _store_due(self) -> None:
        """Store what was written; look at all others too, now and then, and renew their leases with that."""
        due = [_Due(turn, turn.unstored()) for turn in self._list()]
        due = [one for one in due if one.unstored is not None or self._is_due(one.turn)]
        if not due:
            return
        try:
            self._store(due)
        except (TemporarilyUnavailableError, ActionRequiredError):
            raise
        except Exception:
            # An error in the program, which concerns one turn as a rule: all others are stored.
            LOG.exception("What answers have written could not be stored at once.")
            self._store_each(due)

    def _store_each(self, due: Sequence[_Due]) -> None:
        for one in due:
            try:
                self._store([one])
            except (TemporarilyUnavailableError, ActionRequiredError):
                raise
            except Exception:
                message_id = one.turn.message_id
                LOG.exception("What the answer %s has written cannot be stored.", message_id)
                self._give_up(one.turn)

    def _give_up(self, turn: RunningTurn) -> None:
        """End a turn that cannot be stored with what is stored of it; if that fails as well, its lease ends it."""
        if turn.give_up():
            self.wake()
            return
        turn.abandon()
        self._remove(turn)
        self._stored(turn.message_id)

    def _is_due(self, turn: RunningTurn) -> bool:
        return time.monotonic() - self._looked[turn.message_id] >= LOOK

    def _store(self, due: Sequence[_Due]) -> None:
        progress = [one.progress for one in due]
        states = turns.store(self._database(), progress, datetime.now(UTC))
        for one in due:
            self._settle(one, states[one.turn.message_id])

    def _settle(self, stored: _Due, state: TurnState) -> None:
        turn, unstored = stored.turn, stored.unstored
        self._looked[turn.message_id] = time.monotonic()
        if state is TurnState.ENDED:
            turn.abandon()
        elif unstored is not None:
            turn.confirm(unstored)
        if state is TurnState.STOPPING:
            self._break_off(turn)
        if state is TurnState.ENDED or (unstored is not None and unstored.ending is not None):
            self._remove(turn)
        if state is TurnState.ENDED or unstored is not None:
            self._stored(turn.message_id)

    def _break_off(self, turn: RunningTurn) -> None:
        turn.break_off("stopped", STOPPED)
        self.wake()

    def _list(self) -> list[RunningTurn]:
        with self._changed:
            return list(self._turns.values())

    def _remove(self, turn: RunningTurn) -> None:
        with self._changed:
            self._turns.pop(turn.message_id, None)
            self._looked.pop(turn.message_id, None)
            self._changed.notify_all()
