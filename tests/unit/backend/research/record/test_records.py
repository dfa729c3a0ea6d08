"""What the steps of a run make of its record."""

from dataclasses import replace

import pytest

from backend.research.record.budget import ResearchBudget, Spent
from backend.research.record.plan import MAX_TASKS, ResearchPlan, ResearchTask
from backend.research.record.request import Clarification, PastMessage, ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.record.task_report import TaskReport


def make_record(**values: object) -> ResearchRecord:
    plan = ResearchPlan.of_questions(["What is it?", "Who made it?"])
    return ResearchRecord(request=ResearchRequest(question="What?"), plan=plan, **values)  # type: ignore[arg-type]


def make_report(task: ResearchTask, *documents: str) -> TaskReport:
    return TaskReport(task=task, text="So [1].", documents=documents, spent=Spent(tokens=5))


def test_a_plan_has_each_question_once_and_one_at_least() -> None:
    plan = ResearchPlan.of_questions(["  What \n is it? ", "", "what is IT?", "Who?"])
    assert [(one.number, one.question) for one in plan.tasks] == [(1, "What is it?"), (2, "Who?")]
    many = ResearchPlan.of_questions([f"Number {at}?" for at in range(20)])
    assert len(many.tasks) == MAX_TASKS
    with pytest.raises(ValueError, match="one question at least"):
        ResearchPlan.of_questions(["", "  "])


def test_reports_are_in_the_order_of_their_tasks_whatever_ends_first() -> None:
    record = make_record()
    first, second = record.tasks
    late = record.with_report(make_report(second)).with_report(make_report(first))
    assert [one.task.number for one in late.reports] == [1, 2]
    assert (late.pending_tasks, late.spent.tokens) == ((), 10)
    assert len(late.with_report(make_report(first)).reports) == 2


def test_a_later_round_rests_on_what_was_read_before_it() -> None:
    record = make_record()
    first, second = record.tasks
    read = record.with_report(make_report(first, "kb:1")).with_report(make_report(second, "kb:2"))
    later = read.with_round(["How old is it?"])
    (task,) = later.pending_tasks
    assert (task.number, task.round, task.rests_on) == (3, 1, ("kb:1", "kb:2"))
    assert later.with_round([]).is_searched


def test_what_rests_on_a_withdrawn_document_is_gone() -> None:
    record = make_record()
    first, second = record.tasks
    read = record.with_report(make_report(first, "kb:1")).with_report(make_report(second, "kb:2"))
    later = read.with_round(["How old is it?"])
    (third,) = later.pending_tasks
    done = later.with_report(make_report(third, *third.rests_on, "kb:3"))
    left = done.without_documents({"kb:2"})
    assert [one.task.number for one in left.reports] == [1]
    assert left.pending_tasks == (second,)
    assert left.documents == {"kb:1"}
    assert done.without_documents({"kb:9"}).reports == done.reports


def test_where_the_plan_rests_on_a_withdrawn_document_all_is_done_anew() -> None:
    """A report that stayed would stand for the task of the next plan that has its number."""
    plan = ResearchPlan.of_questions(["What is it?", "Who made it?"], ("kb:1",))
    asked = replace(make_record(), plan=plan)
    first, second = asked.tasks
    tried = asked.with_report(make_report(first, "kb:1", "kb:2"))
    tried = tried.with_report(TaskReport.of_failure(second, "It failed."))
    done = tried.with_round(["How old is it?"]).with_round([])
    left = done.without_documents({"kb:1"})
    assert left == ResearchRecord(request=asked.request, spent=Spent(tokens=5))
    assert left.with_plan(ResearchPlan.of_questions(["a?", "b?"])).pending_tasks


def test_what_a_person_wrote_is_known() -> None:
    request = ResearchRequest(
        question="What?",
        history=(PastMessage("user", "Before."), PastMessage("assistant", "Yes.")),
    )
    record = ResearchRecord(
        request=request, clarification=Clarification(("Which?",), "The old one.")
    )
    assert record.person_said == ("What?", "Before.", "The old one.")


def test_agents_share_what_is_left_and_the_report_keeps_its_tenth() -> None:
    budget = ResearchBudget(tokens=1000, seconds=100.0, cycles=20, pages=8)
    left = budget.left_after(Spent(tokens=100, seconds=30.0, cycles=2, pages=0))
    assert (left.tokens, left.cycles, left.pages) == (800, 18, 8)
    assert left.seconds == pytest.approx(60.0)
    share = left.share(4)
    assert (share.tokens, share.cycles, share.pages) == (200, 4, 2)
    assert share.seconds == pytest.approx(60.0)
    assert budget.left_after(Spent(tokens=900)).is_used_up
