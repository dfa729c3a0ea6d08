"""Threads that answer, and a bounded queue in front of them."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

LOG = logging.getLogger("quarry.slack")
WAITING_FOR_EACH = 5
"""Pieces of work that may wait for each that is done at the same time."""
MOST_WAITING_OF_ONE = 5
"""Of one person, so that nobody takes all places."""

Work: TypeAlias = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Job:
    user_id: str
    """For whom it is."""
    work: Work
    fail: Work
    """Called where the work fails by an error in the program."""
    abandon: Work
    """Called where it is not begun before the end."""


class WorkPool:
    def __init__(self, at_once: int) -> None:
        self._most_waiting = at_once * WAITING_FOR_EACH
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._busy = 0
        self._is_stopping = False
        self._threads = [
            threading.Thread(target=self._run, name=f"slack {number}", daemon=True)
            for number in range(at_once)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> bool:
        """Do a job when its turn comes; False where too many wait, of all or of its user, or the pool is stopping."""
        with self._changed:
            of_user = sum(one.user_id == job.user_id for one in self._waiting)
            is_full = len(self._waiting) >= self._most_waiting or of_user >= MOST_WAITING_OF_ONE
            if self._is_stopping or is_full:
                return False
            self._waiting.append(job)
            self._changed.notify()
            return True

    def stop(self) -> None:
        """Begin nothing more; what waits is abandoned."""
        with self._changed:
            self._is_stopping = True
            left = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        for job in left:
            self._call(job.abandon)

    def wait(self, seconds: float) -> bool:
        """Wait, and return whether all that was begun has ended within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._busy == 0, seconds)

    def _run(self) -> None:
        while (job := self._take()) is not None:
            if not self._call(job.work):
                self._call(job.fail)
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def _take(self) -> Job | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_stopping)
            if not self._waiting:
                return None
            self._busy += 1
            return self._waiting.popleft()

    def _call(self, work: Work) -> bool:
        """Do the work, and return whether it did not fail: the thread outlives an error in the program."""
        try:
            work()
        except Exception:
            LOG.exception("Work for Slack failed.")
            return False
        return True
