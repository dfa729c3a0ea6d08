"""A research run, step by step, from wherever its record stands.

Each step takes the record as the steps before have left it, and returns the next one. A step that was broken off may be
repeated: nothing of it is in the record until it has ended.
"""

from dataclasses import replace

from backend.research.agent.run_task import ASKER_GONE
from backend.research.dependencies import (
    ResearchControl,
    ResearchDependencies,
    ResearchFailedError,
)
from backend.research.events import ResearchDone, ResearchFailed
from backend.research.orchestration import choose_next_tasks
from backend.research.planning import make_plan
from backend.research.readable_documents import RightsUnknownError
from backend.research.record.research_record import ResearchRecord
from backend.research.reporting import report_refused, write_report
from backend.research.run_assistant import find_refusal
from backend.research.step_time import check_interrupted
from backend.research.task_pool import run_pending_tasks

MAX_WITHDRAWALS = 3
"""After so many times that documents were withdrawn in mid-run, there is no report."""
WITHDRAWN = "Documents that the report rests on may not be read any more."


def continue_research(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Go on from where a record stands until the report is written; the last event is ResearchDone or ResearchFailed.

    A record without a plan gets one, so that one of a request alone is a whole run; nobody is asked back, and the plan is shown to
    nobody before. `control.save` is called after each step; where one fails, the record that was saved last is returned.

    Raises:
        ResearchInterruptedError: `control.interrupt` was cancelled.
    """
    saved = _SavedRecord(record, control)
    keeping = replace(control, save=saved.save)
    try:
        record = _run_steps(record, dependencies, keeping)
    except ResearchFailedError as error:
        control.emit(ResearchFailed(str(error), error.advice))
        return saved.record
    except RightsUnknownError as error:
        control.emit(ResearchFailed(str(error), "Ask again later."))
        return saved.record
    if record.report is not None:
        control.emit(ResearchDone(record.report))
    return record


class _SavedRecord:
    """Holds the record that was saved last: with the reports of tasks that ended before a step failed."""

    def __init__(self, record: ResearchRecord, control: ResearchControl) -> None:
        self.record = record
        self._save = control.save

    def save(self, record: ResearchRecord) -> None:
        self._save(record)
        self.record = record


def _run_steps(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    withdrawals = 0
    while record.report is None:
        check_interrupted(control)
        _check_asker(dependencies)
        before = len(record.reports)
        record = _take_step(record, dependencies, control)
        withdrawals += len(record.reports) < before
        if withdrawals > MAX_WITHDRAWALS:
            raise ResearchFailedError(WITHDRAWN, "Ask again, for what may be read now.")
        control.save(record)
    return record


def _take_step(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    if refusal := find_refusal(dependencies):
        if not record.written_reports:
            raise ResearchFailedError(refusal.reason, refusal.advice)
        return report_refused(record, refusal, dependencies, control)
    if record.plan is None:
        return make_plan(record, dependencies, control)
    left = record.request.budget.left_after(record.spent)
    may_search = not control.stop.is_cancelled and not left.is_used_up
    if record.pending_tasks and may_search:
        return run_pending_tasks(record, dependencies, control)
    if not record.is_searched and may_search:
        return choose_next_tasks(record, dependencies, control)
    return write_report(record, dependencies, control)


def _check_asker(dependencies: ResearchDependencies) -> None:
    if dependencies.resolve_readers() is None:
        raise ResearchFailedError(ASKER_GONE, "Sign in again, and ask again.")
