"""What `quarry research` prints while it works."""

from collections.abc import Iterator, Mapping

from backend.research.events import (
    ActionDone,
    ActionKind,
    ActionStarted,
    ClarificationAsked,
    EarlierFindingsUsed,
    PlanMade,
    ReportStarted,
    ReportsWithdrawn,
    ResearchEvent,
    RoundDecided,
    TaskDone,
    TaskStarted,
)
from backend.research.record.plan import ResearchTask

_ACTIONS: Mapping[ActionKind, str] = {
    ActionKind.SEARCH: "searching",
    ActionKind.VISIT: "reading",
    ActionKind.REFLECT: "asking further",
    ActionKind.ANSWER: "answering",
    ActionKind.CODE: "calculating",
}


def list_lines(event: ResearchEvent) -> Iterator[str]:
    """Yield the lines that an event is worth; none for most."""
    match event:
        case ClarificationAsked(clarification=clarification):
            yield from clarification.questions
        case EarlierFindingsUsed(task=task, findings=findings):
            place = "plan" if task is None else str(task)
            yield from (
                f"  [{place}] found earlier on {one.found_at:%Y-%m-%d}: {one.question}"
                for one in findings
            )
        case PlanMade(plan=plan):
            yield from map(_describe_task, plan.tasks)
        case TaskStarted(task=task):
            yield f"task {_describe_task(task)}"
        case ActionStarted(task=task, action=action, about=about):
            yield f"  [{task}] {_ACTIONS[action]}: {' · '.join(about)}".rstrip(": ")
        case ActionDone(task=task, notes=notes):
            yield from (f"  [{task}] {note}" for note in notes)
        case TaskDone(report=report):
            found = report.failure or f"{len(report.sources)} sources"
            yield f"task {report.task.number} done: {found}"
        case RoundDecided(tasks=tasks, reason=reason):
            yield f"after reading the reports: {reason}"
            yield from map(_describe_task, tasks)
        case ReportsWithdrawn(tasks=tasks):
            numbers = ", ".join(map(str, tasks))
            yield f"sources of these tasks may not be read any more: {numbers}"
        case ReportStarted(reason=reason):
            yield f"writing the report: {reason}"
        case _:
            pass


def _describe_task(task: ResearchTask) -> str:
    return f"{task.number}. {task.question}"
