"""Locks for changes of the whole index: against other rebuilds, and against syncs."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from backend.store.database import Database
from backend.store.documents import batches, index_claims
from backend.store.sync import run_transitions, runs, sources
from backend.store.sync.runs import RunState
from backend.sync.lease_renewal import LeaseRenewal
from backend.sync.run_lease import is_dead, is_going_on, is_gone, this_process
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.rebuild.events import KeepAlive

_RENEWAL_SECONDS = 1.0
_SOON = timedelta(seconds=5)


@contextmanager
def lock_index(home: Path) -> Iterator[None]:
    """Hold off other rebuilds and moves of the index of this home during the block.

    Raises:
        TemporarilyUnavailableError: another process rebuilds or moves it.
    """
    lock = FileLock(home / "editions.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise TemporarilyUnavailableError(
            "Another process rebuilds or moves the index. To see its progress:"
            " quarry reindex --status",
            retry_after=timedelta(minutes=1),
        ) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def hold_all_sources(database: Database, kind: str) -> Iterator[KeepAlive]:
    """Hold off syncs of all sources during the block, or of none; and the indexing of people's files.

    It never waits for a source while it holds another, so that no deadlock is possible. A sync that wants to
    start meanwhile fails with the reason, to be tried again.

    Raises:
        TemporarilyUnavailableError: a source has a run, or files are being indexed.
    """
    _check_idle(database)
    with ExitStack() as stack:
        renew_files = stack.enter_context(index_claims.hold(database, this_process(), is_dead))
        held = [
            stack.enter_context(_hold_source(database, source.name, kind))
            for source in sources.list_sources(database)
        ]
        # Between two steps of a rebuild its lease may end: a thread renews it as well, while there are steps.
        renewal = stack.enter_context(LeaseRenewal(renew_files))
        yield _renew_all(database, held, kind, renew_files, renewal)


def _check_idle(database: Database) -> None:
    """Check before any run is opened, so that repeated attempts leave no rows behind."""
    for source in sources.list_sources(database):
        _check_not_indexing(database, source.name)
    for run in runs.latest(database).values():
        if is_going_on(run):
            raise TemporarilyUnavailableError(f"{run.description}: {run.stage}.", retry_after=_SOON)


def _check_not_indexing(database: Database, source: str) -> None:
    """Check that no worker is indexing a batch: it would write to the index in spite of the hold."""
    if not batches.is_idle(database, source, is_dead):
        raise TemporarilyUnavailableError(
            f"Batches of {source!r} are being indexed.", retry_after=_SOON
        )


@contextmanager
def _hold_source(database: Database, source: str, kind: str) -> Iterator[int]:
    run = run_transitions.begin(database, source, kind, this_process(), is_gone)
    state: RunState = "interrupted"
    error: str | None = "It was stopped before its end."
    try:
        _check_not_indexing(database, source)
        yield run
        state, error = "done", None
    except (TemporarilyUnavailableError, ActionRequiredError) as failure:
        state, error = "failed", str(failure)
        raise
    finally:
        run_transitions.finish(database, run, state, {}, error)


def _renew_all(
    database: Database,
    held: list[int],
    kind: str,
    renew_files: KeepAlive,
    renewal: LeaseRenewal,
) -> KeepAlive:
    due = 0.0

    def renew() -> None:
        nonlocal due
        renewal.record_progress()
        if time.monotonic() >= due:
            renew_files()
            for run in held:
                runs.renew(database, run, kind, None, {})
            due = time.monotonic() + _RENEWAL_SECONDS

    return renew
