"""The threads of `quarry serve` that do the work that is due."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from backend.store.database import Database
from backend.sync.due_work import Engine
from backend.sync.run_lease import StoppedError
from backend.sync.worker_heartbeat import SERVE, WorkerHeartbeat
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.runtime import malloc
from indexing.runtime.deadline import DeadlineExceededError

PAUSE_SECONDS = 2.0
"""Seconds between two checks for work, if nothing in this process announces any."""
READERS = 8
"""Sources that are fetched at once, so that a slow one does not delay the others."""

LOG = logging.getLogger("quarry.workers")


@dataclass(frozen=True, slots=True)
class _Role:
    """What a thread does, and how it waits for more."""

    name: str
    due: Callable[[], bool]
    rest: Callable[[], object]


class WorkerThreads:
    """Threads that fetch, index, compare with listings, and update the documents of changed sets.

    A thread that stays hung after its work was given up is abandoned, and a new one replaces it.

    Args:
        is_ready: waited for before any work starts.
    """

    def __init__(
        self, engine: Engine, is_ready: Callable[[float], bool], pause: float = PAUSE_SECONDS
    ) -> None:
        malloc.limit_arenas()  # before there are threads
        self._checking, self._more = threading.Lock(), threading.Event()
        bound = replace(engine.bound, stuck=self._replace)
        self._engine = engine = replace(engine, bound=bound, more=self._more.set)
        self._is_ready = is_ready
        self._pause = pause
        self._lock = threading.Lock()
        read = _Role("fetch worker", engine.fetch_due, self._rest_in_turn)
        index = _Role("index worker", engine.index_due, self._rest_until_changed)
        light = _Role("light worker", engine.light_due, partial(engine.stopping.wait, pause))
        # Of its own: a change of rights must not wait for a large set.
        sets = _Role("document set worker", engine.sets_due, partial(engine.stopping.wait, pause))
        roles = (*(read for _ in range(READERS)), index, light, sets)
        self._threads = dict(map(self._make_thread, roles))
        self._left: list[threading.Thread] = []
        self._signing = WorkerHeartbeat(self._database, SERVE, engine.stopping)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        self._signing.start()

    def stop(self, seconds: float) -> bool:
        """Stop between two steps; return whether all threads ended within so many seconds."""
        self._engine.stopping.set()
        self._engine.notifier.notify()
        self._more.set()
        end = time.monotonic() + seconds
        with self._lock:
            threads = [*self._threads, *self._left]
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, end - time.monotonic()))
        self._signing.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def _database(self) -> Database:
        """Return the database. Raises TemporarilyUnavailableError: the process is not ready yet."""
        if not self._is_ready(self._pause):
            raise TemporarilyUnavailableError(
                "Not ready yet.", retry_after=timedelta(seconds=self._pause)
            )
        return self._engine.home().database

    def _make_thread(self, role: _Role) -> tuple[threading.Thread, _Role]:
        thread = threading.Thread(target=self._work, args=(role,), name=role.name, daemon=True)
        return thread, role

    def _rest_until_changed(self) -> None:
        seen = self._engine.notifier.changes
        if not self._engine.stopping.is_set():
            self._engine.notifier.wait_beyond(seen, self._pause)

    def _rest_in_turn(self) -> None:
        """Let one of the idle threads check at a time: any of them can do what it finds, and a check of all
        sources costs the processor some milliseconds."""
        with self._checking:
            if not self._engine.stopping.is_set():
                self._more.wait(self._pause)
                self._more.clear()

    def _replace(self, thread: threading.Thread) -> None:
        with self._lock:
            role = self._threads.pop(thread, None)
            if role is None:
                return
            self._left.append(thread)
            LOG.error("The %s is hung; a new thread replaces it.", role.name)
            successor, role = self._make_thread(role)
            self._threads[successor] = role
        successor.start()

    def _is_wanted(self) -> bool:
        return not self._engine.stopping.is_set() and threading.current_thread() in self._threads

    def _work(self, role: _Role) -> None:
        while self._is_wanted():
            if not self._is_ready(self._pause):
                continue
            try:
                found = role.due()
            except StoppedError:
                return
            except (
                ActionRequiredError,
                TemporarilyUnavailableError,
                DeadlineExceededError,
            ) as error:
                LOG.warning("A task failed: %s", error)
                found = False
            except Exception:
                # A bug. The thread continues, because other sources must not suffer from it.
                LOG.exception("A task failed with an internal error.")
                found = False
            if not found:
                role.rest()
