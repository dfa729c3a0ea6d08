"""Updates which sets documents belong to after a set was changed: in pages, without embedding anything.

What is written is the difference between the rules and the index, so that a job that was killed continues where it
ended. Only documents of the rules that were changed are looked at.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import TracebackType

from backend.store.database import Database
from backend.store.documents import document_set_jobs, document_sets
from backend.store.documents.document_set_jobs import JobLostError, SetJob
from backend.store.sync import runs
from backend.sync.run_lease import (
    describe_error,
    is_bug,
    is_dead,
    is_going_on,
    report_reliably,
    this_process,
)
from connectors.batched import batched
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.index.protocols import Amend, IndexWriter, SelectedDocument, Selection

PAGE_SIZE = 1_000
MAINTENANCE = frozenset({"reindex", "move"})
"""Runs during which the index is copied or switched."""
_LATER = timedelta(minutes=1)
"""The wait before a job is tried again that failed for a reason that may last."""


@dataclass(frozen=True, slots=True)
class DocumentSetUpdater:
    """Carries out one job at a time."""

    database: Database
    writer: IndexWriter
    check: Callable[[], object]
    """Called between two pages; raises where the work must end here."""

    def apply_next(self, set_id: int | None = None) -> bool:
        """Apply the set that has waited longest, or this one; return whether one was due and free."""
        if is_held(self.database):
            return False
        job = document_set_jobs.claim(self.database, this_process(), is_dead, set_id)
        if job is None:
            return False
        with _JobCloser(self.database, job):
            self._apply(job)
        return True

    def _apply(self, job: SetJob) -> None:
        total = self.writer.count([*job.joining, *job.leaving])
        done = 0
        document_set_jobs.report(self.database, job, done, total)
        for selection in (*job.joining, *job.leaving):
            for page in batched(self.writer.select(selection), PAGE_SIZE):
                self._check()
                done += self._update(page)
                document_set_jobs.report(self.database, job, done)
        members = 0 if job.is_removed else self.writer.count([Selection(in_set=job.label)])
        document_set_jobs.finish(self.database, job, members)

    def _check(self) -> None:
        """Check that the set may go on. Raises TemporarilyUnavailableError: the index is about to be another one."""
        self.check()
        if is_held(self.database):
            raise TemporarilyUnavailableError(
                "The index is being rebuilt or moved. The set goes on afterwards.", _LATER
            )

    def _update(self, documents: Sequence[SelectedDocument]) -> int:
        """Write the sets of the documents where the index has others; return of how many."""
        updated: set[str] = set()
        held = {document.id: document.sets for document in documents}
        while True:
            assigned = document_sets.assign(self.database, documents)
            changed = {each: sets for each, sets in assigned.labels.items() if sets != held[each]}
            self.writer.write(Amend(document_id=each, sets=sets) for each, sets in changed.items())
            held |= changed
            updated |= changed.keys()
            # A set may have been changed since its rules were read, and its documents updated before these.
            if document_sets.read_version(self.database) == assigned.version:
                return len(updated)


@dataclass(frozen=True, slots=True)
class _JobCloser:
    """Gives a job back that did not come to its end, with the reason."""

    database: Database
    job: SetJob

    def __enter__(self) -> None:
        """Do nothing: the job is claimed already."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Return whether the error, if any, is no concern of the caller: another worker continues."""
        del kind, trace
        match error:
            case None | JobLostError():
                return True
            case TemporarilyUnavailableError() | ActionRequiredError():
                self._give_back(str(error), _LATER)
            case _ if is_bug(error):
                self._give_back(describe_error(error), _LATER)
            case _:
                self._give_back(None, timedelta())
        return False

    def _give_back(self, trouble: str | None, after: timedelta) -> None:
        give_back = partial(document_set_jobs.give_back, self.database, self.job, trouble, after)
        report_reliably(give_back)


def is_held(database: Database) -> bool:
    """Return whether the index is being copied or switched at this moment."""
    latest = runs.latest(database).values()
    return any(run.kind in MAINTENANCE and is_going_on(run) for run in latest)
