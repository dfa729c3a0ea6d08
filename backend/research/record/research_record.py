"""The record of a research run: all that a process needs to go on at the last finished task."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from backend.research.record.budget import Spent
from backend.research.record.final_report import FinalReport
from backend.research.record.plan import ResearchPlan, ResearchTask
from backend.research.record.request import Clarification, ResearchRequest
from backend.research.record.task_report import TaskReport

MAX_ROUNDS = 3
"""That the orchestrator may add after that of the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRecord:
    """Each step of a run returns a new one."""

    request: ResearchRequest
    clarification: Clarification | None = None
    """None before the question was looked at."""
    plan: ResearchPlan | None = None
    added: tuple[ResearchTask, ...] = ()
    """Tasks of later rounds."""
    reports: tuple[TaskReport, ...] = ()
    """Of tasks that have ended, by their numbers."""
    rounds: int = 0
    """Decided so far, after that of the plan."""
    is_searched: bool = False
    """The orchestrator wants no more tasks, or may have none."""
    spent: Spent = field(default_factory=Spent)
    report: FinalReport | None = None

    @property
    def tasks(self) -> tuple[ResearchTask, ...]:
        return (*(self.plan.tasks if self.plan else ()), *self.added)

    @property
    def pending_tasks(self) -> tuple[ResearchTask, ...]:
        """Those without a report, in their order."""
        done = {one.task.number for one in self.reports}
        return tuple(task for task in self.tasks if task.number not in done)

    @property
    def written_reports(self) -> tuple[TaskReport, ...]:
        return tuple(one for one in self.reports if one.has_text)

    @property
    def documents(self) -> frozenset[str]:
        """The ids of all documents of the index that were read for it."""
        read = {document for one in self.reports for document in one.documents}
        asked = {document for task in self.tasks for document in task.rests_on}
        return frozenset(read | asked)

    def list_question_documents(self, task: ResearchTask) -> frozenset[str]:
        """Return the ids of the documents that the question of a task may say something of.

        Runs of former versions recorded none: then all that was read in the rounds before it.
        """
        if task.rests_on:
            return frozenset(task.rests_on)
        before = (one for one in self.reports if one.task.round < task.round)
        return frozenset(document for one in before for document in one.documents)

    @property
    def person_said(self) -> tuple[str, ...]:
        """What the person wrote: the question, the messages before it, what was said to questions back."""
        before = (one.text for one in self.request.history if one.role == "user")
        answer = self.clarification.answer if self.clarification else None
        return tuple(filter(None, (self.request.question, *before, answer)))

    def with_clarification(self, clarification: Clarification) -> "ResearchRecord":
        return replace(self, clarification=clarification)

    def with_plan(self, plan: ResearchPlan) -> "ResearchRecord":
        """Set the plan, also in place of one that was not begun."""
        return replace(self, plan=plan)

    def with_report(self, report: TaskReport) -> "ResearchRecord":
        """Add the report of a task, in place of one that the task had before.

        Agents work side by side: their seconds are not those of the run.
        """
        others = [one for one in self.reports if one.task.number != report.task.number]
        reports = sorted([*others, report], key=lambda one: one.task.number)
        return replace(
            self, reports=tuple(reports), spent=self.spent + replace(report.spent, seconds=0.0)
        )

    def with_round(self, questions: Collection[str]) -> "ResearchRecord":
        """Add a round of tasks; none ends the search."""
        if not questions:
            return replace(self, is_searched=True)
        first = max((task.number for task in self.tasks), default=0) + 1
        rests_on = tuple(sorted(self.documents))
        tasks = tuple(
            ResearchTask(first + at, question, self.rounds + 1, rests_on)
            for at, question in enumerate(questions)
        )
        return replace(self, added=(*self.added, *tasks), rounds=self.rounds + 1)

    def without_documents(self, withdrawn: Collection[str]) -> "ResearchRecord":
        """Leave out all that rests on documents that may not be read any more.

        Tasks of the plan are to be done again; those of later rounds are gone. Where the plan rests on some, all is planned and
        done anew: the tasks of another plan have the same numbers.
        """
        gone = frozenset(withdrawn)
        if self.plan is None or not gone.isdisjoint(self.plan.rests_on):
            asked = ResearchRecord(request=self.request, clarification=self.clarification)
            return replace(asked, spent=self.spent)
        return replace(
            self,
            added=tuple(task for task in self.added if gone.isdisjoint(task.rests_on)),
            reports=tuple(one for one in self.reports if gone.isdisjoint(one.documents)),
            report=None,
        )
