"""The last step of a run: the report is written, checked, and shown to whoever may read all that it rests on."""

from dataclasses import replace

from backend.research.dependencies import ResearchControl, ResearchDependencies, ResearchRefusal
from backend.research.events import ReportChecked, ReportPiece, ReportStarted
from backend.research.model_calls import ModelCalls, refuse_models
from backend.research.orchestration import BUDGET_ENDED, STOPPED
from backend.research.readable_documents import drop_withdrawn
from backend.research.record.research_record import ResearchRecord
from backend.research.report.final_report import generate_final_report
from backend.research.report.report_markdown import split_markdown
from backend.research.step_time import LEAST_SECONDS, StepTime, check_interrupted
from indexing.runtime.deadline import Deadline

ALL_SEARCHED = "The search is at its end."


def report_refused(
    record: ResearchRecord,
    refusal: ResearchRefusal,
    dependencies: ResearchDependencies,
    control: ResearchControl,
) -> ResearchRecord:
    """Put the reports that there are together, without a model. As `write_report`."""
    silent = refuse_models(dependencies, refusal.reason)
    return write_report(record, silent, control, refusal.reason)


def write_report(
    record: ResearchRecord,
    dependencies: ResearchDependencies,
    control: ResearchControl,
    refused: str = "",
) -> ResearchRecord:
    """Write the final report, check its citations, and show it; emits ReportStarted, ReportChecked and ReportPiece.

    Rights are read again before it is written and before it is shown. A record whose `report` is still None is returned where
    documents were withdrawn meanwhile: what rested on them is gone, and the steps before are to be done again.

    Args:
        refused: why nothing more is searched, where that is neither the end of the search nor of its budget.

    Raises:
        ResearchFailedError: there is nothing to report of.
        RightsUnknownError: what may be read could not be found out.
        ResearchInterruptedError
    """
    step = StepTime(record, control)
    if (readable := drop_withdrawn(record, dependencies, control)) is not record:
        return step.finish(readable)
    reason = refused or _find_reason(step, control)
    control.emit(ReportStarted(reason))
    budget = record.request.budget
    # A stopped run, too, has its time for the report.
    deadline = Deadline.after(
        max(LEAST_SECONDS, budget.seconds - record.spent.seconds), control.interrupt
    )
    calls = ModelCalls(dependencies, max(0, budget.tokens - record.spent.tokens))
    notes = [] if reason == ALL_SEARCHED else [reason]
    report = generate_final_report(record, calls, notes, deadline)
    check_interrupted(control)
    left = drop_withdrawn(record, dependencies, control)
    if left is not record:
        return step.finish(left, calls.tokens)
    control.emit(ReportChecked(report.counts, report.documents))
    for piece in split_markdown(report.markdown):
        control.emit(ReportPiece(piece, report.documents))
    return step.finish(replace(record, report=report), calls.tokens)


def _find_reason(step: StepTime, control: ResearchControl) -> str:
    if control.stop.is_cancelled:
        return STOPPED
    return BUDGET_ENDED if step.left.is_used_up else ALL_SEARCHED
