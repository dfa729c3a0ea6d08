"""Change the index as a whole: alone, and at its end with the runs of all sources held."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from backend.store import batches, run_transitions, runs, sources
from backend.store.database import Database
from backend.store.runs import RunState
from backend.sync.process_identity import is_dead, is_going_on, is_gone, this_process
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.rebuild.events import KeepAlive

_RENEWAL_SECONDS = 1.0
_SOON = timedelta(seconds=5)


@contextmanager
def lock_index(home: Path) -> Iterator[None]:
    """A block in which no other process rebuilds or moves the index of this home.

    Raises:
        TemporarilyUnavailableError: one does.
    """
    lock = FileLock(home / "editions.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise TemporarilyUnavailableError(
            "The index is being rebuilt or moved by another process. How far it is:"
            " quarry reindex --status.",
            retry_after=timedelta(minutes=1),
        ) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def hold_all_sources(database: Database, kind: str) -> Iterator[KeepAlive]:
    """A block in which no source is synced; all of them are held, or none.

    Nobody who holds one source waits for another, so nobody waits for ever: a sync that wants to begin
    meanwhile is told what goes on, and to try again.

    Raises:
        TemporarilyUnavailableError: a source has a run.
    """
    _check_idle(database)
    with ExitStack() as stack:
        held = [
            stack.enter_context(_hold_source(database, source.name, kind))
            for source in sources.list_sources(database)
        ]
        yield _renew_all(database, held, kind)


def _check_idle(database: Database) -> None:
    """So that trying again and again leaves no rows behind."""
    for source in sources.list_sources(database):
        _check_not_indexing(database, source.name)
    for run in runs.latest(database).values():
        if is_going_on(run):
            raise TemporarilyUnavailableError(f"{run.description}: {run.stage}.", retry_after=_SOON)


def _check_not_indexing(database: Database, source: str) -> None:
    """What was read is not indexed while the source is held; what is being indexed comes to its end first."""
    if not batches.is_idle(database, source, is_dead):
        raise TemporarilyUnavailableError(
            f"What was read from {source!r} is being indexed.", retry_after=_SOON
        )


@contextmanager
def _hold_source(database: Database, source: str, kind: str) -> Iterator[int]:
    run = run_transitions.begin(database, source, kind, this_process(), is_gone)
    state: RunState = "interrupted"
    error: str | None = "It was stopped before it was done."
    try:
        _check_not_indexing(database, source)
        yield run
        state, error = "done", None
    except (TemporarilyUnavailableError, ActionRequiredError) as failure:
        state, error = "failed", str(failure)
        raise
    finally:
        run_transitions.finish(database, run, state, {}, error)


def _renew_all(database: Database, held: list[int], kind: str) -> KeepAlive:
    due = 0.0

    def renew() -> None:
        nonlocal due
        if time.monotonic() >= due:
            for run in held:
                run_transitions.renew(database, run, kind, None, {})
            due = time.monotonic() + _RENEWAL_SECONDS

    return renew
