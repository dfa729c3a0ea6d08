"""What of a run is shown, also of one that a former version stored: a question is shown with all that it was written from, or not at all."""

from dataclasses import replace

import pytest

from backend.research.record.plan import ResearchPlan, ResearchTask
from backend.research.record.record_json import read_record, write_record
from backend.research.record.request import ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.record.task_report import TaskReport
from backend.research.runs.run_gate import list_documents, show_record

SECRET = "Why does the pump cost 40 EUR?"
FAILURE = "Nothing was found that answers this."


def make_run(*, of_task: tuple[str, ...], of_report: tuple[str, ...]) -> ResearchRecord:
    """One whose task of the second round, written after kb:price was read, failed.

    Args:
        of_task: what it is recorded to rest on.
        of_report: what its report is.
    """
    plan = ResearchPlan.of_questions(["What does it cost?", "Who made it?"])
    price, maker = plan.tasks
    record = ResearchRecord(request=ResearchRequest(question="What is the pump?"), plan=plan)
    record = record.with_report(TaskReport(task=price, text="40 EUR [1].", documents=("kb:price",)))
    record = record.with_report(TaskReport(task=maker, text="Blau [1].", documents=("kb:maker",)))
    task = ResearchTask(3, SECRET, 1, of_task)
    failed = TaskReport(task=task, failure=FAILURE, documents=of_report)
    return read_record(write_record(replace(record, added=(task,)).with_report(failed)))


@pytest.mark.parametrize(
    ("of_task", "of_report"),
    [
        (("kb:maker", "kb:price"), ("kb:maker", "kb:price")),
        # The report of a task that failed had no documents once,
        (("kb:maker", "kb:price"), ()),
        # and a task none before that.
        ((), ()),
    ],
)
def test_a_question_is_shown_with_all_that_it_was_written_from_or_not_at_all(
    of_task: tuple[str, ...], of_report: tuple[str, ...]
) -> None:
    record = make_run(of_task=of_task, of_report=of_report)
    hidden = show_record(record, (), frozenset({"kb:maker"}))
    assert hidden.withheld
    assert hidden.withheld_tasks == {1, 3}
    assert SECRET not in str(hidden.record)
    assert [one.task.question for one in hidden.record.reports] == ["Who made it?"]
    assert list_documents(record) == {"kb:maker", "kb:price"}
    whole = show_record(record, (), list_documents(record))
    assert (whole.record, whole.withheld, whole.withheld_tasks) == (record, False, frozenset())


def test_a_failed_task_of_the_plan_rests_on_nothing() -> None:
    """Its question was written before anything was read."""
    record = make_run(of_task=(), of_report=())
    first, *_ = record.tasks
    failed = record.with_report(TaskReport.of_failure(first, FAILURE))
    shown = show_record(failed, (), frozenset({"kb:maker"}))
    assert [one.task.number for one in shown.record.reports] == [1, 2, 3]


def test_a_recorded_question_rests_on_nothing_that_was_read_later() -> None:
    """A task of the plan that was done again, after a right was withdrawn, has read something else."""
    record = make_run(of_task=("kb:maker",), of_report=("kb:maker",))
    shown = show_record(record, (), frozenset({"kb:maker"}))
    assert [one.question for one in shown.record.added] == [SECRET]
