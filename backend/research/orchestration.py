"""The orchestrator: it reads the reports of a round, and decides what is looked for next, if anything."""

from collections.abc import Collection, Iterable

from backend.research import prompts
from backend.research.agent.gaps import to_key
from backend.research.dependencies import ResearchControl, ResearchDependencies
from backend.research.events import RoundDecided
from backend.research.model_calls import ModelCalls, ask_for_json, read_texts
from backend.research.planning import describe_question
from backend.research.readable_documents import drop_withdrawn
from backend.research.record.plan import LONGEST_QUESTION
from backend.research.record.research_record import MAX_ROUNDS, ResearchRecord
from backend.research.record.task_report import TaskReport
from backend.research.report.merged_reports import merge_reports
from backend.research.run_assistant import read_instructions
from backend.research.step_time import StepTime
from backend.search.llm_protocol import CompletionError
from backend.search.sections import to_json
from indexing.runtime.deadline import Deadline

MAX_NEXT_TASKS = 3
MAX_READ = 12
"""Questions of an answer that are looked at."""
DECIDING_SECONDS = 90.0

STOPPED = "The research was stopped."
BUDGET_ENDED = "The budget for searching has ended."
ROUNDS_ENDED = "There were as many rounds as there may be."
NOTHING_NEW = "The last round brought no new source."
NOTHING_MISSING = "Nothing is missing."


def choose_next_tasks(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Let the orchestrator read the reports and add a round of tasks, or none; emits RoundDecided.

    Where documents may not be read any more, what rests on them is left out; tasks of the plan may have to be done again then.

    Raises:
        RightsUnknownError: what may be read could not be found out.
        ResearchInterruptedError
    """
    step = StepTime(record, control)
    record = drop_withdrawn(record, dependencies, control)
    may_search = not control.stop.is_cancelled and not step.left.is_used_up
    if record.plan is None or (record.pending_tasks and may_search):
        return step.finish(record)
    calls = ModelCalls(dependencies, step.tokens_left)
    reason = _find_end(record, step, control)
    questions: list[str] = []
    if not reason:
        questions, reason = _ask(record, calls, step.deadline(DECIDING_SECONDS))
    documents = tuple(sorted(record.documents))
    record = record.with_round(questions)
    added = tuple(task for task in record.added if questions and task.round == record.rounds)
    control.emit(RoundDecided(record.rounds, added, reason, documents))
    return step.finish(record, calls.tokens)


def _find_end(record: ResearchRecord, step: StepTime, control: ResearchControl) -> str:
    """Return why there is no further round; empty where there may be one."""
    if control.stop.is_cancelled:
        return STOPPED
    if step.left.is_used_up:
        return BUDGET_ENDED
    if record.rounds >= MAX_ROUNDS:
        return ROUNDS_ENDED
    return "" if _brought_new(record.reports, record.rounds) else NOTHING_NEW


def _brought_new(reports: Iterable[TaskReport], last_round: int) -> bool:
    """Return whether the last round cites a source that none before it does."""
    before: set[str] = set()
    last: set[str] = set()
    for report in reports:
        cited = last if report.task.round == last_round else before
        cited.update(source.document_id for source in report.sources)
    return bool(last - before)


def _ask(record: ResearchRecord, calls: ModelCalls, deadline: Deadline) -> tuple[list[str], str]:
    """Return the questions of the next round, and why these; none where the model fails."""
    described, today = _describe(record, calls), record.request.today
    instructions = read_instructions(calls.dependencies)
    messages = prompts.quote(prompts.NEXT_TASKS, described, today, instructions)
    try:
        questions, reason = ask_for_json(calls.write, messages, _read, deadline)
    except CompletionError as error:
        return [], str(error)
    asked = {to_key(task.question) for task in record.tasks}
    by_key = {to_key(one): one for one in reversed(questions) if to_key(one) not in asked}
    fresh = list(reversed(by_key.values()))[:MAX_NEXT_TASKS]
    return fresh, reason or ("" if fresh else NOTHING_MISSING)


def _describe(record: ResearchRecord, calls: ModelCalls) -> dict[str, object]:
    count_tokens = calls.dependencies.count_tokens
    values: dict[str, object] = {
        **describe_question(record),
        "could_not_be_found": list(_list_gaps(record.reports)),
    }
    room = calls.room - count_tokens(to_json(values))
    return {**values, **merge_reports(record.written_reports).describe(room, count_tokens)}


def _list_gaps(reports: Collection[TaskReport]) -> Iterable[str]:
    for report in reports:
        if report.failure:
            yield report.task.question
        yield from report.gaps


def _read(value: object) -> tuple[list[str], str] | None:
    match value:
        case {"tasks": [*tasks], **others}:
            reason = others.get("reason")
            said = " ".join(reason.split()) if isinstance(reason, str) else ""
            return read_texts(tasks, MAX_READ, LONGEST_QUESTION), said
        case _:
            return None
