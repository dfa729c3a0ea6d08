"""Research runs in the threads of a process: of `quarry serve`, or of one that `quarry worker` supervises."""

import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from backend.container import Container
from backend.research.runs.learned_items import keep_learned
from backend.research.runs.research_workers import ResearchWork, ResearchWorkers, ignore_stored_run
from backend.research.runs.run_steps import RunStepper
from backend.schemas.research_events import encode_research_event
from backend.settings import Settings
from backend.store.database import Database
from backend.store.research import research_leases
from backend.store.research.research_leases import ClaimLimits
from backend.store.research.research_runs import ResearchRun
from backend.sync.run_lease import is_dead
from backend.worker.process import ContainerProvider, start_logging, watch_parent
from indexing.runtime import malloc

GRACE_SECONDS = 3.0
"""Seconds to give runs back once the process stops; after that their leases are left to run out."""


def make_research_work(
    find_container: Callable[[], Container],
    find_database: Callable[[], Database],
    at_once: int,
    stored: Callable[[str], object] = ignore_stored_run,
) -> ResearchWork:
    """Make the work on research of a process.

    Args:
        find_container: called for each run.
        find_database: called each time.
        at_once: runs that all processes work on together.
        stored: called with the id of a run of which more is stored.
    """

    def is_awaited(run: ResearchRun) -> bool:
        limits = ClaimLimits(at_once=at_once, is_dead=is_dead)
        return research_leases.is_awaited(find_database(), run.owner, limits, datetime.now(UTC))

    def make_stepper() -> RunStepper:
        parts = find_container().research
        return RunStepper(
            open_dependencies=parts.open,
            find_rights=parts.find_rights,
            is_awaited=is_awaited,
            keep_learned=lambda run, record: keep_learned(find_database(), run, record),
        )

    return ResearchWork(
        database=find_database,
        make_stepper=make_stepper,
        encode=encode_research_event,
        at_once=at_once,
        stored=stored,
    )


def run_research_worker() -> None:
    """Work on research runs in this process, until it is terminated or its supervisor has died."""
    malloc.limit_arenas()  # before there are threads
    start_logging()
    stopping, settings = threading.Event(), Settings()

    def stop(number: int, frame: object) -> None:
        del number, frame
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor sends SIGTERM
    watch_parent(stopping.set)
    containers = ContainerProvider(settings)
    work = make_research_work(containers, lambda: containers.database, settings.research_at_once)
    workers = ResearchWorkers(work, _is_ready)
    workers.start()
    while not stopping.wait(1.0):
        pass
    workers.stop(GRACE_SECONDS)


def _is_ready(seconds: float) -> bool:
    """Return True: the parts of the process are opened by the work that needs them."""
    del seconds
    return True
