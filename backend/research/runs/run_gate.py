"""What of a research run somebody may see: nothing that rests on a document that they may not read now."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from backend.research.record.final_report import FinalReport
from backend.research.record.plan import ResearchPlan
from backend.research.record.research_record import ResearchRecord


@dataclass(frozen=True, slots=True)
class ShownRecord:
    record: ResearchRecord
    """What may be shown of it."""
    withheld: bool
    """Whether something is left out."""
    withheld_tasks: frozenset[int]
    """The numbers of the tasks whose reports are."""


def list_documents(record: ResearchRecord) -> frozenset[str]:
    """Return all documents on which anything of a record rests."""
    reported = record.report.documents if record.report else ()
    return record.documents.union(reported)


def show_record(
    record: ResearchRecord, history: Collection[str], readable: frozenset[str]
) -> ShownRecord:
    """Leave out what may not be shown.

    Args:
        history: documents that the messages before the question rest on, and so all of the run.
        readable: the documents among them, and among those of the record, that may be read.
    """
    if not readable.issuperset(history):
        bare = ResearchRecord(request=record.request)
        return ShownRecord(bare, record.plan is not None, _list_withheld(record, bare))
    shown = replace(
        record,
        plan=_show_plan(record.plan, readable),
        added=tuple(
            one for one in record.added if readable.issuperset(record.list_question_documents(one))
        ),
        reports=tuple(
            one
            for one in record.reports
            # That of a failed task has read nothing, in runs of former versions, and repeats its question.
            if readable.issuperset(record.list_question_documents(one.task).union(one.documents))
        ),
        report=_show_report(record.report, readable),
    )
    return ShownRecord(shown, shown != record, _list_withheld(record, shown))


def _list_withheld(record: ResearchRecord, shown: ResearchRecord) -> frozenset[int]:
    reported, left = ({one.task.number for one in each.reports} for each in (record, shown))
    return frozenset(reported - left)


def _show_plan(plan: ResearchPlan | None, readable: frozenset[str]) -> ResearchPlan | None:
    return plan if plan is not None and readable.issuperset(plan.rests_on) else None


def _show_report(report: FinalReport | None, readable: frozenset[str]) -> FinalReport | None:
    return report if report is not None and readable.issuperset(report.documents) else None
