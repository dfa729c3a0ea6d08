"""Run one task: an agent with its own tools, its own share of the budget, and the rights that hold now."""

import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from backend.chat.readable_ids import is_research_reference
from backend.chat.turn_settings import AssistantSettings
from backend.research.agent.actions import Place
from backend.research.agent.agent import AgentWork, FoundAnswer, ResearchAgent
from backend.research.agent.evidence import Evidence
from backend.research.agent.intermediate_report import (
    ReportOrder,
    generate_intermediate_report,
    quote_sources,
)
from backend.research.agent.past_answers import find_past_answers
from backend.research.agent.private_texts import collect_private_sentences, make_read_texts
from backend.research.agent.tools import AgentTools, ToolRequest
from backend.research.dependencies import ResearchControl, ResearchDependencies
from backend.research.events import IntermediateReportCitedDocs, TaskDone, TaskStarted
from backend.research.knowledge_items import KnowledgeItem, KnowledgeType
from backend.research.model_calls import ModelCalls
from backend.research.readable_documents import RightsUnknownError, list_withdrawn
from backend.research.record.budget import Spent, TaskBudget
from backend.research.record.plan import ResearchTask
from backend.research.record.research_record import ResearchRecord
from backend.research.record.task_report import TaskReport
from backend.research.references.cited_text import CitedText, select_sources
from backend.research.run_assistant import ASSISTANT_GONE, write_instructions
from backend.research.step_time import check_interrupted, ended_by
from backend.search.llm_protocol import CompletionError
from backend.search.models import DocumentNumbers
from connectors.access import Readers
from indexing.runtime.deadline import CancelToken, Deadline

SEARCH_SHARE = 0.75
"""Of the tokens and the time of a task; the rest is for its report."""
MAX_REASONS = 3

ASKER_GONE = "The account or the session of the person who asked has ended."
WITHDRAWN = "A document that was read for this may not be read any more."
BUDGET_ENDED = "The budget had ended before this was looked at."
NOTHING_FOUND = "Nothing was found that answers this."
STOPPED = "It was stopped before its end."
NO_PLACE = "Nothing is searched: neither documents nor the web."
NO_MODEL = "The language model did not write this; it is quoted from the sources."


def run_task(
    record: ResearchRecord,
    task: ResearchTask,
    budget: TaskBudget,
    dependencies: ResearchDependencies,
    control: ResearchControl,
) -> TaskReport:
    """Let one agent work on a task; whatever fails is a report too, whose `failure` says why.

    Raises:
        ResearchInterruptedError: nothing of the task is kept.
    """
    control.emit(TaskStarted(task))
    started = time.monotonic()
    with ended_by(control.stop, control.interrupt) as token:
        order = _TaskOrder(record, task, budget)
        report = _TaskRun(order, dependencies, control, token).run()
    check_interrupted(control)
    spent = replace(report.spent, seconds=time.monotonic() - started)
    report = replace(report, spent=spent)
    if report.has_text:
        cited = tuple(replace(one, texts=()) for one in report.sources)
        control.emit(IntermediateReportCitedDocs(task.number, cited))
    control.emit(TaskDone(report))
    return report


@dataclass(frozen=True, slots=True)
class _TaskOrder:
    record: ResearchRecord
    task: ResearchTask
    budget: TaskBudget


class _TaskRun:
    def __init__(
        self,
        order: _TaskOrder,
        dependencies: ResearchDependencies,
        control: ResearchControl,
        token: CancelToken,
    ) -> None:
        """Prepare the work on a task; `token` is cancelled where the run is stopped or interrupted."""
        self._record = order.record
        self._task = order.task
        self._budget = order.budget
        self._dependencies = dependencies
        self._control = control
        self._calls = ModelCalls(dependencies, order.budget.tokens)
        self._end = Deadline.after(order.budget.seconds, token)
        self._steps = 0
        self._pages = 0

    def run(self) -> TaskReport:
        """Work on the task; where what was read is withdrawn meanwhile, once more, for what may be read then."""
        report = self._attempt()
        may_retry = report.failure == WITHDRAWN and self._steps < self._budget.cycles
        if may_retry and not self._find_rights_fault(self._task.rests_on):
            return self._attempt()
        return report

    def _attempt(self) -> TaskReport:
        if self._budget.is_used_up or not self._end.remaining():
            return self._fail(self._why_not_begun)
        readers = self._dependencies.resolve_readers()
        if readers is None:
            return self._fail(ASKER_GONE)
        assistant = self._dependencies.resolve_assistant(readers)
        if assistant is None:
            return self._fail(ASSISTANT_GONE)
        if not list_places(self._record, self._dependencies, assistant):
            return self._fail(NO_PLACE)
        tools = self._make_tools(readers, assistant)
        found = self._search(tools)
        self._steps, self._pages = found.steps, self._pages + len(tools.opened)
        return self._check_rights(self._report(tools, found))

    def _fail(self, failure: str) -> TaskReport:
        return TaskReport.of_failure(self._task, failure, self._spent)

    @property
    def _spent(self) -> Spent:
        return Spent(tokens=self._calls.tokens, cycles=self._steps, pages=self._pages)

    @property
    def _why_not_begun(self) -> str:
        return STOPPED if self._is_stopped() else BUDGET_ENDED

    def _is_stopped(self) -> bool:
        return self._control.stop.is_cancelled

    def _make_tools(self, readers: Readers, assistant: AssistantSettings) -> AgentTools:
        dependencies, numbers = self._dependencies, DocumentNumbers()
        open_search = dependencies.open_search
        places = list_places(self._record, dependencies, assistant)
        search = open_search(self._calls.judge, numbers, assistant.scope) if open_search else None
        request = ToolRequest(
            dependencies=dependencies,
            readers=readers,
            assistant=assistant,
            filters=self._record.request.filters,
            places=places,
            search_tool=search if Place.DOCUMENTS in places else None,
            numbers=numbers,
            judge=self._calls.judge,
            asked=self._record.request.question,
        )
        return AgentTools(
            request,
            make_read_texts(self._record, self._task, readers, dependencies.person_id),
            Evidence(self._task.rests_on),
        )

    def _search(self, tools: AgentTools) -> FoundAnswer:
        tokens = int(self._budget.tokens * SEARCH_SHARE)
        work = AgentWork(
            record=self._record,
            task=self._task,
            past=find_past_answers(self._record.request.history, self._dependencies),
            budget=replace(self._budget, pages=self._budget.pages - self._pages),
            steps=self._steps,
            tools=tools,
            calls=replace(self._calls, most_tokens=tokens),
            deadline=self._end.limited_to(self._budget.seconds * SEARCH_SHARE),
            emit=self._control.emit,
        )
        return ResearchAgent(work).run()

    def _report(self, tools: AgentTools, found: FoundAnswer) -> TaskReport:
        evidence = tools.evidence
        text, note = self._write(tools, found)
        report = TaskReport(
            task=self._task,
            sources=select_sources(evidence.sources, text.seen),
            knowledge=tuple(_select_knowledge(evidence.knowledge, text)),
            gaps=found.gaps,
            documents=evidence.documents,
            spent=self._spent,
        )
        if not text.seen:
            return replace(report, failure=self._describe_failure(found.notes))
        private = collect_private_sentences("\n".join((text.text, *found.gaps)), tools.texts)
        return replace(report, text=text.text, note=note, private_text=private)

    def _write(self, tools: AgentTools, found: FoundAnswer) -> tuple[CitedText, str]:
        """Return the report, and how it came about where that matters."""
        order = ReportOrder(
            question=self._task.question,
            answer=found.answer.text if found.answer else "",
            knowledge=tools.evidence.knowledge,
            sources=tools.evidence.sources,
            today=self._record.request.today,
            instructions=write_instructions(tools.request.assistant),
        )
        instead = found.answer or quote_sources(order.question, order.sources)
        if self._is_stopped():
            return instead, STOPPED
        if not order.sources:
            return instead, ""
        try:
            ended = "" if found.answer else _join(found.notes[-1:])
            return generate_intermediate_report(order, self._calls, self._end), ended
        except CompletionError as error:
            why = STOPPED if self._is_stopped() else str(error)
            return instead, why if found.answer else _join((NO_MODEL, why))

    def _describe_failure(self, notes: tuple[str, ...]) -> str:
        if self._is_stopped():
            return STOPPED
        return _join((NOTHING_FOUND, *notes[-MAX_REASONS:]))

    def _check_rights(self, report: TaskReport) -> TaskReport:
        """Return the report only where all that the agent has read may be read still."""
        failure = self._find_rights_fault(report.documents)
        return self._fail(failure) if failure else report

    def _find_rights_fault(self, documents: Collection[str]) -> str:
        try:
            return WITHDRAWN if list_withdrawn(documents, self._dependencies) else ""
        except RightsUnknownError as error:
            return str(error)


def _select_knowledge(items: Iterable[KnowledgeItem], text: CitedText) -> Iterator[KnowledgeItem]:
    """Yield what was learned, of pages and documents only those that the report cites.

    An answer that rests on an earlier finding is kept no second time: it is as old as that.
    """
    cited = {one for source in text.seen.values() for one in (source.document_id, source.link)}
    for item in items:
        origins = {one for each in item.references for one in (each.document_id, each.url) if one}
        if any(map(is_research_reference, origins)):
            continue
        if item.type is not KnowledgeType.URL or cited & origins:
            yield item


def list_places(
    record: ResearchRecord, dependencies: ResearchDependencies, assistant: AssistantSettings
) -> frozenset[Place]:
    """Return where the person wants to search, as far as the assistant does, and there is anything to search with."""
    request = record.request
    may_search = assistant.searches and dependencies.open_search is not None
    documents = request.uses_documents and may_search
    web = request.uses_web and assistant.may_use_web and dependencies.web is not None
    places = {Place.DOCUMENTS: documents, Place.WEB: web}
    return frozenset(place for place, may in places.items() if may)


def _join(sentences: Iterable[str]) -> str:
    return " ".join(filter(None, sentences))
