"""What a run does, told to the database now and then."""

import time
from contextlib import closing

from backend.store import runs
from backend.store.database import Database
from backend.sync.metrics import counts
from indexing.ingestion.executor import ProgressSteps
from indexing.ingestion.progress import Progress, RunCounters

_SECONDS = 1.0


class Telling:
    """Tells of one run what a tally of it has counted since it was last told."""

    def __init__(self, database: Database, run: int, tally: RunCounters) -> None:
        self._database = database
        self._run = run
        self._tally = tally
        self._told = counts(tally)
        self._due = 0.0

    def begin(self, stage: str) -> None:
        """The run comes to another stage; what was counted by others so far is not told again.

        Raises:
            Ended: the run is not this process's any more.
        """
        runs.enter(self._database, self._run, stage)
        self._told = counts(self._tally)

    def steps(self, steps: ProgressSteps) -> ProgressSteps:
        """The same progress; what is left is told at its end. Raises Ended: as `begin`."""
        last: Progress | None = None
        with closing(steps):
            for progress in steps:
                last = progress
                if time.monotonic() >= self._due:
                    self._tell(progress.stage, progress.item)
                yield progress
        if last is not None:
            self._tell(last.stage, last.item)

    def _tell(self, stage: str, item: str | None) -> None:
        now = counts(self._tally)
        more = {name: count - self._told[name] for name, count in now.items()}
        runs.tell(self._database, self._run, stage, item, more)
        self._told = now
        self._due = time.monotonic() + _SECONDS
