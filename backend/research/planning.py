"""Before the search: what is unclear of a question, and which sub-questions it is divided into."""

from collections.abc import Sequence
from dataclasses import replace

from backend.chat.earlier_findings import EarlierFinding
from backend.research import prompts
from backend.research.dependencies import ResearchControl, ResearchDependencies
from backend.research.earlier_findings import (
    describe_finding,
    find_for_plan,
    list_documents,
    list_used,
)
from backend.research.events import ClarificationAsked, EarlierFindingsUsed, PlanMade
from backend.research.model_calls import ModelCalls, ask_for_json, read_texts
from backend.research.record.plan import LONGEST_QUESTION, MAX_TASKS, ResearchPlan
from backend.research.record.request import Clarification
from backend.research.record.research_record import ResearchRecord
from backend.research.run_assistant import read_instructions
from backend.research.step_time import StepTime
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.search.prompts import MAX_TURN_CHARACTERS, MAX_TURNS

MAX_CLARIFICATIONS = 3
PLANNING_SECONDS = 60.0


def clarify(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Ask the model what is unclear of the question; emits ClarificationAsked where anything is.

    There is one round: a record that has one, or a plan, is returned as it is. A model that fails asks nothing.
    """
    if record.clarification is not None or record.plan is not None:
        return record
    time = StepTime(record, control)
    calls = ModelCalls(dependencies, time.tokens_left)
    clarification = Clarification(tuple(_ask(record, calls, time, prompts.CLARIFY, "questions")))
    if clarification.questions:
        control.emit(ClarificationAsked(clarification))
    return time.finish(record.with_clarification(clarification), calls.tokens)


def make_plan(
    record: ResearchRecord, dependencies: ResearchDependencies, control: ResearchControl
) -> ResearchRecord:
    """Divide the question into tasks; emits PlanMade. Where the model fails, the question itself is the one task."""
    if record.plan is not None:
        return record
    time = StepTime(record, control)
    calls = ModelCalls(dependencies, time.tokens_left)
    findings = find_for_plan(record, dependencies, time.deadline(PLANNING_SECONDS))
    documents = list_documents(findings)
    if findings:
        control.emit(EarlierFindingsUsed(None, list_used(findings), documents))
    questions = _ask(record, calls, time, prompts.PLAN, "tasks", findings)
    plan = ResearchPlan.of_questions(questions or [record.request.question], documents)
    plan = replace(plan, private_text=_join_private(findings))
    control.emit(PlanMade(plan))
    return time.finish(record.with_plan(plan), calls.tokens)


def _join_private(findings: Sequence[EarlierFinding]) -> str:
    """Return what findings say, but for those that rest on pages of the web alone."""
    private = (one for one in findings if one.document_ids or not one.is_of_web)
    return "\n".join(f"{one.question}\n{one.answer}" for one in private)


def _ask(
    record: ResearchRecord,
    calls: ModelCalls,
    time: StepTime,
    system: str,
    field: str,
    findings: Sequence[EarlierFinding] = (),
) -> list[str]:
    """Return the questions that the model writes; none where it fails."""
    most = MAX_TASKS if field == "tasks" else MAX_CLARIFICATIONS

    def read(value: object) -> list[str] | None:
        match value:
            case {**fields} if field in fields:
                return read_texts(fields[field], most, LONGEST_QUESTION)
            case _:
                return None

    instructions = read_instructions(calls.dependencies)
    described, today = describe_question(record), record.request.today
    if findings:
        described["found_earlier"] = list(map(describe_finding, findings))
    messages = prompts.quote(system, described, today, instructions)
    try:
        return ask_for_json(calls.write, messages, read, time.deadline(PLANNING_SECONDS))
    except CompletionError:
        return []


def describe_question(record: ResearchRecord) -> dict[str, object]:
    """Return the question with what was said before, as JSON values."""
    said = [one.to_chat_message() for one in record.request.history if one.text][-MAX_TURNS:]
    clarified = record.clarification
    described: dict[str, object] = {"question": record.request.question}
    if said:
        described["conversation_before"] = [_describe(one) for one in said]
    if clarified and clarified.answer:
        described["asked_back"] = list(clarified.questions)
        described["answered"] = clarified.answer
    return described


def _describe(message: ChatMessage) -> dict[str, str]:
    return {"from": message.role, "text": message.text[:MAX_TURN_CHARACTERS]}
