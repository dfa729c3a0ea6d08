"""The loop of one research agent."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from backend.research import prompts
from backend.research.agent.actions import (
    Action,
    Answer,
    Code,
    Place,
    Reflect,
    Search,
    Visit,
    read_action,
)
from backend.research.agent.answers import learn_from_answer
from backend.research.agent.gaps import Gaps
from backend.research.agent.judgement import AnswerJudge
from backend.research.agent.tools import ActionResult, AgentTools
from backend.research.earlier_findings import (
    NOT_FOUND,
    describe_finding,
    list_documents,
    list_used,
)
from backend.research.events import (
    ActionDone,
    ActionKind,
    ActionStarted,
    EarlierFindingsUsed,
    ResearchEvent,
    SourceFound,
)
from backend.research.knowledge.messages import compose_messages, fit_knowledge
from backend.research.knowledge_items import KnowledgeItem
from backend.research.model_calls import ModelCalls, ask_for_json
from backend.research.record.budget import TaskBudget
from backend.research.record.plan import ResearchTask
from backend.research.record.research_record import ResearchRecord
from backend.research.references.cited_text import CitedText, keep_markers, select_sources
from backend.research.run_assistant import write_instructions
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.search.sections import to_json
from indexing.runtime.deadline import Deadline

MAX_REJECTED = 2
"""Answers to the question of the task; then the report is written of what there is."""
LEAST_TOKENS = 1_000
"""With fewer left, nothing more is decided."""
KNOWLEDGE_SHARE = 0.7
"""Of what a model is shown before it decides."""
SHOWN_NOTES = 6
SHOWN_PAGES = 12
SHOWN_SOURCES = 40

Emit: TypeAlias = Callable[[ResearchEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWork:
    """What an agent is given to do, and with what."""

    record: ResearchRecord
    task: ResearchTask
    past: Sequence[KnowledgeItem]
    """What the conversation before established."""
    budget: TaskBudget
    steps: int = 0
    """That were taken before, and count."""
    tools: AgentTools
    calls: ModelCalls
    deadline: Deadline
    """Of the search; its report has time behind it."""
    emit: Emit


@dataclass(frozen=True, slots=True)
class _Choice:
    action: Action


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """How the loop of an agent ended."""

    answer: CitedText | None
    """That was judged to count."""
    gaps: tuple[str, ...]
    notes: tuple[str, ...]
    steps: int
    """With those before."""


class ResearchAgent:
    """Belongs to one thread."""

    def __init__(self, work: AgentWork) -> None:
        self._work = work
        self._tools = work.tools
        self._evidence = work.tools.evidence
        self._gaps = Gaps(work.task.question)
        self._judge = AnswerJudge(work.calls.judge, work.record.request.today)
        self._off: frozenset[ActionKind] = frozenset()
        """What brought nothing in the step before."""
        self._notes: list[str] = []
        self._faults: list[str] = []
        """Of the notes, why answers did not count."""
        self._rejected = 0
        self._steps = work.steps
        self._answer: CitedText | None = None

    def run(self) -> FoundAnswer:
        """Look up what was found earlier, search for the question of the task itself, which no model has to decide, and go on until it is
        answered."""
        notes = self._recall()
        self._take_step(Search((self._work.task.question,), self._places), notes)
        while self._may_go_on and (action := self._choose()) is not None:
            self._take_step(action)
        self._note_end()
        notes = tuple(dict.fromkeys(self._notes))
        return FoundAnswer(self._answer, self._gaps.unanswered, notes, self._steps)

    def _recall(self) -> tuple[str, ...]:
        """Look up what was found earlier; return why not, where that failed."""
        task = self._work.task
        try:
            self._tools.recall(task.question, self._work.record, self._work.deadline)
        except CompletionError:
            return (NOT_FOUND,)
        found = self._tools.earlier.values()
        if found:
            documents = list_documents(found)
            self._work.emit(EarlierFindingsUsed(task.number, list_used(found), documents))
            self._tell_sources(frozenset())
        return ()

    @property
    def _places(self) -> frozenset[Place]:
        return self._tools.request.places

    @property
    def _may_go_on(self) -> bool:
        return (
            self._answer is None
            and self._rejected < MAX_REJECTED
            and self._steps < self._work.budget.cycles
            and self._work.calls.tokens_left >= LEAST_TOKENS
            and self._work.deadline.remaining() > 0
        )

    def _note_end(self) -> None:
        if self._answer is None and self._steps >= self._work.budget.cycles:
            self._notes.append("The steps of this task were used up.")
        elif self._answer is None and self._work.calls.tokens_left < LEAST_TOKENS:
            self._notes.append("The tokens of this task were used up.")
        elif self._answer is None and not self._work.deadline.remaining():
            self._notes.append("The time of this task was used up.")

    def _allowed(self) -> frozenset[ActionKind]:
        kinds = {
            ActionKind.SEARCH: bool(self._places),
            ActionKind.VISIT: bool(self._tools.to_read) and self._pages_left > 0,
            ActionKind.REFLECT: self._gaps.may_grow,
            ActionKind.ANSWER: bool(self._evidence.sources),
            ActionKind.CODE: self._tools.request.dependencies.calculate is not None,
        }
        return frozenset(kind for kind, may in kinds.items() if may) - self._off

    @property
    def _pages_left(self) -> int:
        return self._work.budget.pages - len(self._tools.opened)

    def _choose(self) -> Action | None:
        """Let the model decide; None where nothing is left to do, or it does not say what."""
        allowed = self._allowed()

        def read(value: object) -> _Choice | None:
            action = read_action(value, allowed, self._places)
            return _Choice(action) if action else None

        if not allowed:
            return None
        try:
            messages = self._compose(allowed)
            choice = ask_for_json(self._work.calls.write, messages, read, self._work.deadline)
        except CompletionError as error:
            self._notes.append(f"No further step was decided: {error}")
            return None
        return choice.action

    def _compose(self, allowed: frozenset[ActionKind]) -> list[ChatMessage]:
        today = self._work.record.request.today
        places = sorted(one.value for one in self._places)
        instructions = write_instructions(self._tools.request.assistant)
        system = ChatMessage("system", prompts.agent_prompt(allowed, places, today, instructions))
        room = int(self._work.calls.room * KNOWLEDGE_SHARE)
        count_tokens = self._tools.request.dependencies.count_tokens
        known = [*self._work.past, *self._evidence.knowledge]
        fitting = fit_knowledge(known, self._gaps.current, room, count_tokens)
        state = ChatMessage("user", to_json(self._describe_state()))
        requests = [
            ChatMessage("user", prompts.tell_fault(one)) for one in self._faults[-SHOWN_NOTES:]
        ]
        return [system, *compose_messages(fitting, [state], requests)]

    def _describe_state(self) -> dict[str, object]:
        state: dict[str, object] = {"question": self._gaps.current}
        if not self._gaps.is_main:
            state["for_the_question"] = self._work.task.question
        state |= {
            "asked_by_the_person": self._work.record.request.question,
            "open_questions": list(self._gaps.unanswered),
            "found_earlier": [
                {"source": number, **describe_finding(one)}
                for number, one in self._tools.earlier.items()
            ],
            "queries_tried": list(self._tools.tried),
            "sources": list(self._describe_sources()),
            "to_read": list(self._describe_pages()),
            "notes": [one for one in self._notes if one not in self._faults][-SHOWN_NOTES:],
        }
        return {name: value for name, value in state.items() if value}

    def _describe_sources(self) -> Iterator[dict[str, object]]:
        for number, one in sorted(self._evidence.sources.items())[-SHOWN_SOURCES:]:
            dated = {"date": one.date.date().isoformat()} if one.date else {}
            yield {"source": number, "title": one.title, "address": one.url, **dated}

    def _describe_pages(self) -> Iterator[dict[str, str]]:
        for page in list(self._tools.to_read.values())[-SHOWN_PAGES:]:
            yield {"page": page.label, "title": page.title, "address": page.url}

    def _take_step(self, action: Action, notes: tuple[str, ...] = ()) -> None:
        """Do an action, and note what it brought, behind the `notes` of what was done before it."""
        kind, about = _describe(action)
        self._steps += 1
        self._work.emit(
            ActionStarted(
                task=self._work.task.number,
                step=self._steps,
                action=kind,
                question=self._gaps.current,
                about=about,
                documents=self._evidence.documents,
            )
        )
        known = frozenset(self._evidence.sources)
        asked = self._gaps.current
        brought = self._do(action)
        brought = replace(brought, notes=(*notes, *brought.notes))
        self._notes += brought.notes
        self._off = frozenset() if brought.new else frozenset({kind})
        self._tell(kind, brought, known)
        if self._gaps.current == asked:
            self._gaps.turn()

    def _tell(self, kind: ActionKind, brought: ActionResult, known: frozenset[int]) -> None:
        self._tell_sources(known)
        task = self._work.task.number
        self._work.emit(
            ActionDone(
                task=task,
                step=self._steps,
                action=kind,
                brought=brought.new,
                notes=brought.notes,
                sent=brought.sent,
                receivers=brought.receivers,
                documents=self._evidence.documents,
            )
        )

    def _tell_sources(self, known: frozenset[int]) -> None:
        for number, source in sorted(self._evidence.sources.items()):
            if number not in known:
                self._work.emit(SourceFound(self._work.task.number, replace(source, texts=())))

    def _do(self, action: Action) -> ActionResult:
        match action:
            case Search():
                return self._tools.search(action, self._work.deadline)
            case Visit(pages):
                question, most = self._gaps.current, self._pages_left
                return self._tools.visit(pages, question, most, self._work.deadline)
            case Reflect(questions):
                return ActionResult(self._gaps.add(questions))
            case Answer(text):
                return self._judge_answer(text)
            case Code(problem, program):
                return self._calculate(problem, program)

    def _judge_answer(self, text: str) -> ActionResult:
        answer = keep_markers(text, self._evidence.mapping)
        sources = self._evidence.sources
        cited = select_sources(sources, answer.seen)
        question, is_main = self._gaps.current, self._gaps.is_main
        judgement = self._judge.judge(question, answer.text, cited, self._work.deadline)
        if judgement.fault:
            self._rejected += is_main
            fault = f"The answer to “{question}” did not count. {judgement.fault}"
            self._faults.append(fault)
            return ActionResult(0, (fault,))
        if is_main:
            self._answer = answer
        else:
            now = self._tools.request.dependencies.now()
            self._evidence.learn([learn_from_answer(question, answer, sources, now)])
            self._gaps.close()
        return ActionResult(1, (judgement.note,) if judgement.note else ())

    def _calculate(self, problem: str, program: str) -> ActionResult:
        calculate = self._tools.request.dependencies.calculate
        if calculate is None:
            raise ValueError("there is no sandbox")
        match calculate(problem, program, self._work.deadline):
            case KnowledgeItem() as item:
                self._evidence.learn([item])
                return ActionResult(1)
            case str() as reason:
                return ActionResult(0, (reason,))


def _describe(action: Action) -> tuple[ActionKind, tuple[str, ...]]:
    """Return the kind of an action, and what a person is shown that it is about."""
    match action:
        case Search(queries):
            return ActionKind.SEARCH, queries
        case Visit(pages):
            return ActionKind.VISIT, pages
        case Reflect(questions):
            return ActionKind.REFLECT, questions
        case Answer():
            return ActionKind.ANSWER, ()
        case Code(problem):
            return ActionKind.CODE, (problem,)
