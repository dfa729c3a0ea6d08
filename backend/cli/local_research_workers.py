"""Research that a process of the command line has begun, and works on itself."""

import logging
import threading

from backend.chat.readable_ids import make_own_memories
from backend.composition.research import ResearchParts
from backend.conversations.turn_notifications import TurnNotifications
from backend.programs.home_container import HomeContainer
from backend.research.runs.learned_items import keep_learned
from backend.research.runs.research_workers import claim_run
from backend.research.runs.run_journal import RunJournal
from backend.research.runs.run_steps import RunRights, RunStepper, work_on
from backend.schemas.research_events import encode_research_event
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.research import research_runs
from backend.store.research.research_leases import ClaimedResearch
from backend.store.research.research_runs import ENDED
from connectors.errors import ActionRequiredError, NotFoundError, TemporarilyUnavailableError

LOG = logging.getLogger("quarry.research")
OWNER = ConversationOwner(None)
"""Of what is begun at the command line."""
GRACE_SECONDS = 3.0
"""Seconds to give runs back once the process stops; after that another process takes them over."""
_LOOK_SECONDS = 0.5


def make_stepper(parts: ResearchParts, rights: RunRights) -> RunStepper:
    """Return what works on a run within these rights, and gives its place to nobody."""
    return RunStepper(
        open_dependencies=parts.open,
        find_rights=lambda _: rights,
        is_awaited=lambda _: False,
        keep_learned=lambda run, record: keep_learned(parts.database, run, record),
    )


class LocalResearchWorkers:
    """Threads that each work on one run, whether anybody follows it or not. `quarry serve` goes on with those that are given back."""

    def __init__(self, home: HomeContainer) -> None:
        self.news = TurnNotifications()
        self._home = home
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._journals: set[RunJournal] = set()
        self._threads: list[threading.Thread] = []

    def begin(self, research_id: str) -> None:
        """Let a run be worked on."""
        thread = threading.Thread(
            target=self._finish, args=(research_id,), name="research", daemon=True
        )
        with self._lock:
            self._threads = [one for one in self._threads if one.is_alive()]
            self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """Give all runs back at their last finished task."""
        self._stopping.set()
        with self._lock:
            journals, threads = list(self._journals), list(self._threads)
        for journal in journals:
            journal.interrupt.cancel()
        for thread in threads:
            thread.join(GRACE_SECONDS)

    def _finish(self, research_id: str) -> None:
        while not self._stopping.is_set():
            try:
                if self._go_on(research_id):
                    return
            except NotFoundError:
                return  # it was deleted
            except (ActionRequiredError, TemporarilyUnavailableError) as error:
                LOG.warning("Research cannot go on: %s", error)
            self._stopping.wait(_LOOK_SECONDS)

    def _go_on(self, research_id: str) -> bool:
        """Work on the run unless another process does; return whether it has ended."""
        claimed = claim_run(self._database, research_id)
        if claimed is not None:
            self._work_on(claimed)
        return research_runs.get_own(self._database, OWNER, research_id).run.state in ENDED

    def _work_on(self, claimed: ClaimedResearch) -> None:
        journal = RunJournal(
            lambda: self._database, claimed, encode_research_event, self.news.announce
        )
        rights = RunRights(
            readers_now=self._home.find_readers,
            own_memories=make_own_memories(self._database, None),
        )
        with self._lock:
            self._journals.add(journal)
        try:
            if self._stopping.is_set():
                journal.interrupt.cancel()
            work_on(claimed, journal, make_stepper(self._home.get().research, rights))
        finally:
            with self._lock:
                self._journals.discard(journal)

    @property
    def _database(self) -> Database:
        return self._home.get().database
