"""The threads that work on research runs: each claims the run whose turn it is, and goes on with it."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.research.runs.run_events import Encode
from backend.research.runs.run_journal import RunJournal
from backend.research.runs.run_steps import RunStepper, work_on
from backend.store.database import Database
from backend.store.research import research_leases
from backend.store.research.research_leases import ClaimedResearch, ClaimLimits
from backend.sync.run_lease import is_dead, this_process
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError

LOG = logging.getLogger("quarry.research")
PAUSE_SECONDS = 1.0
"""Seconds between two looks for a run, where nothing in this process says that there is one."""


def ignore_stored_run(run_id: str) -> None:
    """Do nothing: nobody in this process follows a run."""
    del run_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchWork:
    """What the threads of a process work with."""

    database: Callable[[], Database]
    """Called each time."""
    make_stepper: Callable[[], RunStepper]
    """Called for each run: parts of a process are opened anew after a switch of the index."""
    encode: Encode
    at_once: int
    """Runs that all processes work on together."""
    stored: Callable[[str], object] = ignore_stored_run
    """Called with the id of a run of which more is stored."""

    @property
    def limits(self) -> ClaimLimits:
        return ClaimLimits(at_once=self.at_once, is_dead=is_dead)


class ResearchWorkers:
    """The threads of this process that work on research.

    Args:
        is_ready: waited for before any work starts.
    """

    def __init__(
        self,
        work: ResearchWork,
        is_ready: Callable[[float], bool],
        pause: float = PAUSE_SECONDS,
    ) -> None:
        self._work = work
        self._is_ready = is_ready
        self._pause = pause
        self._stopping = threading.Event()
        self._lock, self._looking = threading.Lock(), threading.Lock()
        self._journals: set[RunJournal] = set()
        # One more than are worked on at once, to write the reports of runs that are stopped.
        self._threads = [
            threading.Thread(target=self._go_on, name="research worker", daemon=True)
            for _ in range(work.at_once + 1)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def give_back(self) -> None:
        """Give all runs back at their last finished task, soon, and take no more."""
        self._stopping.set()
        with self._lock:
            journals = list(self._journals)
        for journal in journals:
            journal.interrupt.cancel()

    def stop(self, seconds: float) -> bool:
        """Do so, and return whether it was done within so many seconds."""
        self.give_back()
        end = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _go_on(self) -> None:
        while not self._stopping.is_set():
            if not self._is_ready(self._pause):
                continue
            try:
                found = self._work_on_next()
            except (ActionRequiredError, TemporarilyUnavailableError) as error:
                LOG.warning("Research cannot go on: %s", error)
                found = False
            except Exception:
                # A bug. The thread continues, because other runs must not suffer from it.
                LOG.exception("Research failed with an internal error.")
                found = False
            if not found:
                self._rest_in_turn()

    def _rest_in_turn(self) -> None:
        """Let one of the idle threads look at a time: any of them can work on what it finds."""
        with self._looking:
            self._stopping.wait(self._pause)

    def _work_on_next(self) -> bool:
        """Return whether there was a run to work on."""
        claimed = research_leases.claim_next(
            self._work.database(), this_process(), self._work.limits, datetime.now(UTC)
        )
        if claimed is None:
            return False
        journal = RunJournal(self._work.database, claimed, self._work.encode, self._work.stored)
        with self._lock:
            self._journals.add(journal)
        try:
            if self._stopping.is_set():
                journal.interrupt.cancel()
            work_on(claimed, journal, self._work.make_stepper())
        finally:
            with self._lock:
                self._journals.discard(journal)
        return True


def claim_run(database: Database, run_id: str) -> ClaimedResearch | None:
    """Claim this run for this process, whosever turn it is; None where another one has it."""
    return research_leases.claim(database, run_id, this_process(), is_dead, datetime.now(UTC))
