"""The steps of a research run. Each takes the record as the steps before have left it, and returns the next one.

A step that was broken off may be repeated: nothing of it is in the record until it has ended.
"""

from backend.research.dependencies import ResearchControl, ResearchDependencies
from backend.research.record.budget import TaskBudget
from backend.research.record.plan import ResearchTask
from backend.research.record.request import ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.record.task_report import TaskReport


def clarify(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Ask the model what is unclear of the question; emits ClarificationAsked where anything is."""
    raise NotImplementedError


def make_plan(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Divide the question into tasks; emits PlanMade. Where the model fails, the question itself is the one task."""
    raise NotImplementedError


def run_task(
    record: ResearchRecord,
    task: ResearchTask,
    budget: TaskBudget,
    dependencies: ResearchDependencies,
    control: ResearchControl,
) -> TaskReport:
    """Let one agent work on a task; whatever fails is a report too."""
    raise NotImplementedError


def run_pending_tasks(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Run all tasks that have no report yet, side by side; `control.save` is called after each."""
    raise NotImplementedError


def choose_next_tasks(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Let the orchestrator read the reports and add a round of tasks, or none; emits RoundDecided."""
    raise NotImplementedError


def write_report(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Write the final report, check its citations, and show it; emits ReportChecked and ReportPiece.

    Raises:
        ResearchFailedError: there is nothing to report of.
    """
    raise NotImplementedError


def continue_research(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Go on from where a record stands until the report is written; the last event is ResearchDone or ResearchFailed.

    A record without a plan gets one; the plan is not shown to anybody before.

    Raises:
        ResearchInterruptedError: `control.interrupt` was cancelled.
    """
    raise NotImplementedError


def run_research(
    request: ResearchRequest, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Do all steps but the clarification, which needs a person to answer."""
    raise NotImplementedError
