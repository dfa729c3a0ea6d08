"""Go on with a run from its record, step by step, until it ends, waits for its person, or gives its place to somebody else's."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from backend.chat.readable_ids import OwnMemories, find_readable
from backend.research.dependencies import (
    ReadersNow,
    ResearchControl,
    ResearchDependencies,
    ResearchInterruptedError,
)
from backend.research.planning import clarify, make_plan
from backend.research.record.record_json import read_record
from backend.research.record.research_record import ResearchRecord
from backend.research.run_assistant import find_refusal
from backend.research.runs.run_events import encode_state
from backend.research.runs.run_journal import LeftRun, ResearchLostError, RunJournal
from backend.research.steps import continue_research
from backend.store.research.research_leases import ClaimedResearch
from backend.store.research.research_runs import ENDED, ResearchRun, ResearchState
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.runtime.deadline import Deadline, DeadlineExceededError

LOG = logging.getLogger("quarry.research")
HISTORY_WITHDRAWN = (
    "The messages before the question rest on a source that was deleted, or that you may not read any more. Ask again"
    " without them."
)
ASKER_GONE = "Your account has ended or was disabled, so this research ends here."
INTERNAL = "An internal error ended this research. Start it again."
PATIENCE = timedelta(days=1)
"""So long after it was asked for, a run outlives that the index or a source of the web is away."""
LONGEST_PAUSE = timedelta(seconds=10)
_RIGHTS_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRights:
    """What the owner of a run may read now."""

    readers_now: ReadersNow
    own_memories: OwnMemories


OpenDependencies: TypeAlias = Callable[
    [ResearchRun, RunRights], AbstractContextManager[ResearchDependencies]
]
"""Opens what a run works with; raises ActionRequiredError where it cannot be worked on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStepper:
    """Works on one claimed run."""

    open_dependencies: OpenDependencies
    find_rights: Callable[[ResearchRun], RunRights]
    is_awaited: Callable[[ResearchRun], bool]
    """Whether the run has to give its place to somebody else's, once its tasks have ended."""
    keep_learned: Callable[[ResearchRun, ResearchRecord], None]
    """Called before a run ends with a report; again after a crash, so that it keeps nothing twice."""


class _Progress:
    """Holds the last record of a run that was saved."""

    def __init__(self, record: ResearchRecord) -> None:
        self.record = record


def work_on(claimed: ClaimedResearch, journal: RunJournal, stepper: RunStepper) -> None:
    """Go on with a run as far as it comes here. Whatever happens to it is stored, unless the run is lost."""
    progress = _Progress(read_record(claimed.record))
    with journal.keeping():
        journal.note_claimed()
        try:
            state, problem = _advance(claimed, journal, stepper, progress)
        except ResearchInterruptedError:
            state, problem = "waiting", None
        except ResearchLostError:
            return
        except (ActionRequiredError, DeadlineExceededError) as error:
            state, problem = "failed", str(error) or INTERNAL
        except TemporarilyUnavailableError as error:
            state, problem = _put_off(claimed.run, journal, error)
        except Exception:
            # A bug. The thread goes on with other runs, and the person learns that this one has ended.
            LOG.exception("The research %s failed with an internal error.", claimed.run.id)
            state, problem = "failed", INTERNAL
        if state in ENDED and progress.record.report is not None:
            # Before the run has ended: whoever takes over after a crash between the two keeps it then.
            _keep_learned(claimed.run, progress.record, stepper)
        _leave(journal, progress.record, state, problem)


def _keep_learned(run: ResearchRun, record: ResearchRecord, stepper: RunStepper) -> None:
    try:
        stepper.keep_learned(run, record)
    except Exception:
        # A bug. The report is worth more than the findings, and a run that never ended would be taken over for ever.
        LOG.exception("What the research %s has learned was not kept.", run.id)


def _put_off(
    run: ResearchRun, journal: RunJournal, error: TemporarilyUnavailableError
) -> tuple[ResearchState, str | None]:
    """Wait a moment, and let the run go on from its record; once it is old, it ends."""
    if datetime.now(UTC) - run.created_at > PATIENCE:
        return "failed", f"{error} Start it again later."
    LOG.warning("The research %s is put off: %s", run.id, error)
    journal.interrupt.wait(min(error.retry_after, LONGEST_PAUSE).total_seconds())
    return "waiting", None


def _leave(
    journal: RunJournal, record: ResearchRecord, state: ResearchState, problem: str | None
) -> None:
    event = encode_state(state, problem)
    try:
        journal.leave(record, LeftRun(state, problem, event))
    except ResearchLostError:
        LOG.info("A research run was deleted, or goes on elsewhere.")


def _advance(
    claimed: ClaimedResearch, journal: RunJournal, stepper: RunStepper, progress: _Progress
) -> tuple[ResearchState, str | None]:
    """Return the state in which the run is left, and why it has no report."""

    def save(record: ResearchRecord) -> None:
        journal.save(record)
        progress.record = record
        if _is_between_rounds(record) and stepper.is_awaited(claimed.run):
            journal.interrupt.cancel()

    control = ResearchControl(
        emit=journal.emit, save=save, stop=journal.stop, interrupt=journal.interrupt
    )
    rights = stepper.find_rights(claimed.run)
    with stepper.open_dependencies(claimed.run, rights) as dependencies:
        if refusal := _find_refusal(claimed.run, dependencies, rights, progress.record):
            return "failed", refusal
        if waiting := _prepare(claimed.run, dependencies, control, progress):
            return waiting, None
        progress.record = continue_research(progress.record, dependencies, control)
    problem = None
    if progress.record.report is None:
        failure = journal.failure
        problem = f"{failure.message} {failure.advice}".strip() if failure else INTERNAL
    if journal.stop.is_cancelled:
        return "stopped", problem
    return ("done", None) if problem is None else ("failed", problem)


def _is_between_rounds(record: ResearchRecord) -> bool:
    """Return whether nothing is lost where a run gives its place to another one."""
    return record.plan is not None and not record.pending_tasks and record.report is None


def _find_refusal(
    run: ResearchRun,
    dependencies: ResearchDependencies,
    rights: RunRights,
    record: ResearchRecord,
) -> str | None:
    """Return why a run may not go on now, not even to report what there is."""
    readers = rights.readers_now()
    if readers is None:
        return ASKER_GONE
    refusal = find_refusal(dependencies)
    if refusal is not None and not record.written_reports:
        return f"{refusal.reason} {refusal.advice}"
    history = frozenset(run.history_document_ids)
    deadline = Deadline.after(_RIGHTS_SECONDS)
    readable = find_readable(history, dependencies.index, readers, rights.own_memories, deadline)
    return None if readable.issuperset(history) else HISTORY_WITHDRAWN


def _prepare(
    run: ResearchRun,
    dependencies: ResearchDependencies,
    control: ResearchControl,
    progress: _Progress,
) -> ResearchState | None:
    """Ask the person back, and plan, as far as neither was done; return the state in which the run waits for the person, if it does."""
    if control.stop.is_cancelled or not run.confirms_plan or progress.record.plan is not None:
        return None
    if progress.record.clarification is None:
        _keep(clarify(progress.record, dependencies, control), control, progress)
        asked = progress.record.clarification
        if asked is not None and asked.questions:
            return "clarifying"
    _keep(make_plan(progress.record, dependencies, control), control, progress)
    return "planned"


def _keep(record: ResearchRecord, control: ResearchControl, progress: _Progress) -> None:
    if record != progress.record:
        control.save(record)
