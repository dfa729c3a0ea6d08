"""Agent mode: a loop in which the model decides what to search for and to read, until it answers."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace

from backend.chat import prompts
from backend.chat.agent.call_plans import PlannedCall
from backend.chat.agent.concurrent_tasks import TaskFailure
from backend.chat.agent.tool_calls import (
    InvalidCall,
    ParsedCall,
    WebSearchCall,
    parse_calls,
    to_sendable_call,
)
from backend.chat.agent.tool_definitions import choose_tools
from backend.chat.agent.tool_replies import FRAME
from backend.chat.agent.tool_work import InternalSearch
from backend.chat.agent.turn_tools import FinishedStep, TurnTools
from backend.chat.chat_state import ChatStateContainer
from backend.chat.earlier_findings import EARLIER_SHARE
from backend.chat.events import SEARCH_ERRORS, ChatEvent, EarlierFindingsShown
from backend.chat.history import MessageTooLongError, ToolExchange
from backend.chat.intent.search_plan import needs_no_search, to_query
from backend.chat.llm.messages import CallMessage, ToolCall, ToolResult
from backend.chat.llm_step import ModelStream, StepRequest, StepResult, start_stream
from backend.chat.message_lookup import (
    EARLIER,
    KNOWLEDGE,
    WEB_SHARE,
    start_finding,
    take_found,
)
from backend.chat.model_turn import EMPTY, FILES_TOO_LONG, ModelTurn, TurnFailedError
from backend.chat.readable_ids import make_research_reference
from backend.chat.references import (
    fit_references,
    format_references,
    make_research_references,
    map_references,
    number_references,
)
from backend.chat.turn import ChatDependencies, ChatTurn
from backend.search.events import StepFailed
from backend.search.models import Budgets, SearchResult
from backend.search.search_tool import StartedSearch, follow_search
from backend.web_search.tool_texts import WEB_SEARCH

MAX_CYCLES = 6
MAX_INVALID_STEPS = 1
"""Steps with calls that cannot be run; after these the model gets no tools."""
PREAMBLE_CHARACTERS = 200
"""What a model says before its first search ("I will look that up") is no part of the answer."""


def run_llm_loop(
    turn: ChatTurn, dependencies: ChatDependencies, state: ChatStateContainer
) -> Generator[ChatEvent, None, None]:
    """Answer a message by tools; the last event is AnswerDone or TurnFailed.

    If documents are searched, the message is searched while the first step runs. The step decides: if it calls
    the search, its queries join that search; if it answers, as a greeting, what was found is not used. A
    model that cannot call tools, or does not manage to, is given the results of the message itself.

    `state` is complete at every moment; closing the generator stops the turn and the model.
    """
    yield from _AgentTurn(turn, dependencies, state).run()


class _AgentTurn(ModelTurn):
    def __init__(
        self, turn: ChatTurn, dependencies: ChatDependencies, state: ChatStateContainer
    ) -> None:
        super().__init__(turn, dependencies, state)
        self._tools = choose_tools(dependencies, turn.language)
        files = self._files.files if self._loaded else ()
        self._turn_tools = TurnTools(self._turn, dependencies, files)
        self._begun = False
        self._started: StartedSearch | None = None
        """The search of the message, until its results are used."""
        self._queries: set[str] = set()
        self._has_looked = False
        """Something was searched or opened, be it documents or the web."""
        self._invalid_steps = 0

    @property
    def _may_search(self) -> bool:
        return self._dependencies.search is not None or self._dependencies.web is not None

    @property
    def _instructions(self) -> tuple[str, ...]:
        return super()._instructions if self._dependencies.web is None else (prompts.FROM_SOURCES,)

    def _answer(self) -> Generator[ChatEvent, None, None]:
        if self._searches_files and self._dependencies.search is None:
            raise TurnFailedError(FILES_TOO_LONG)
        yield from self._add_earlier()
        if self._tools and not self._model.settings.calls_tools:
            self._begun = True
            yield from self._continue_without_tools()
        for cycle in range(MAX_CYCLES):
            if cycle == MAX_CYCLES - 1:
                self._tools = ()
            result = yield from self._step(self._preamble)
            if result is None:
                yield from self._continue_without_tools()
            elif result.calls and self._tools:
                yield from self._run_calls(result)
            elif result.text.strip():
                yield self._finish(result)
                return
            elif self._tools:
                yield from self._continue_without_tools()
            else:
                break
        raise TurnFailedError(EMPTY)

    def _add_earlier(self) -> Generator[ChatEvent, None, None]:
        """Put in what research found out before for the message: it is known before the first step, and costs no call."""
        find = self._dependencies.find_earlier if self._may_search else None
        findings = yield from take_found(start_finding(find, self._turn), EARLIER)
        if not findings:
            return
        try:
            room = int(self._conversation.budgets(self._tools).answer * EARLIER_SHARE)
        except MessageTooLongError:
            return
        fitting = fit_references(
            make_research_references(findings), room, self._dependencies.count_tokens
        )
        shown = number_references(fitting, self._dependencies.numbers)
        if not shown:
            return
        named = {one.document.document_id for one in shown}
        given = [one for one in findings if make_research_reference(one.id) in named]
        self._turn_tools.add_findings(given)
        self._cite(map_references(shown))
        for one in shown:
            self._state.add_text(one.number, one.content)
        self._conversation.add_results(prompts.earlier_findings_prompt(format_references(shown)))
        yield EarlierFindingsShown.of(given)

    @property
    def _preamble(self) -> int:
        return PREAMBLE_CHARACTERS if self._tools and not self._has_looked else 0

    def _follow_replacement(self) -> Generator[ChatEvent, None, None]:
        if not self._model.settings.calls_tools:
            self._conversation.put_exchanges()
            yield from self._continue_without_tools()

    def _open_step(self, request: StepRequest) -> Generator[ChatEvent, None, ModelStream]:
        """Ask the model, and search the message while the first step runs."""
        search, is_first = self._dependencies.search, not self._begun
        self._begun = True
        if search is None or not is_first:
            return (yield from super()._open_step(request))
        stream = start_stream(self._model, request, self._patience())
        try:
            usual = Budgets.for_window(self._window)
            self._started = yield from search.start(self._search_request((), usual))
        except SEARCH_ERRORS:
            # If the step wants results, the message is searched again, and a failure is then reported.
            self._started = None
        return stream

    def _continue_without_tools(self) -> Generator[ChatEvent, None, None]:
        """Put in what the message itself finds if nothing was searched yet, and offer no tools from now on."""
        self._tools = ()
        asks_web = self._asks_web_for_message
        if self._dependencies.search is not None and not self._searched:
            yield from self._search_documents_for_message(asks_web=asks_web)
        if asks_web:
            yield from self._search_web_for_message()

    def _search_documents_for_message(self, *, asks_web: bool) -> Generator[ChatEvent, None, None]:
        """Search the message; where the web is asked too, a search that fails loses only its own."""
        budgets = self._conversation.budgets(())
        share = int(budgets.answer * (1 - WEB_SHARE)) if asks_web else budgets.answer
        try:
            result = yield from self._search(InternalSearch(()), replace(budgets, answer=share))
        except SEARCH_ERRORS as error:
            if not asks_web:
                raise
            yield StepFailed(KNOWLEDGE, str(error))
            self._conversation.add_results(prompts.KNOWLEDGE_FAILED)
            return
        self._add_results(result)
        self._conversation.add_results(result.for_model or prompts.NOTHING_FITS)

    @property
    def _asks_web_for_message(self) -> bool:
        is_unused = self._dependencies.web is not None and not self._has_looked
        return is_unused and not needs_no_search(self._turn.message)

    def _search_web_for_message(self) -> Generator[ChatEvent, None, None]:
        """Search the web for the message; where documents leave no room in a small window, they stand alone."""
        try:
            room = self._conversation.budgets(()).answer - self._dependencies.count_tokens(FRAME)
        except MessageTooLongError:
            if self._searched:
                return
            raise
        call = WebSearchCall(ToolCall("", WEB_SEARCH, ""), to_query(self._turn.message), 1)
        step = yield from self._run_plans(self._turn_tools.plan([call], frozenset()), room)
        [reply] = self._show(step)
        self._conversation.add_results(reply)

    def _run_calls(self, step: StepResult) -> Generator[ChatEvent, None, None]:
        """Run the calls of a step side by side; invalid calls may be corrected once."""
        calls = parse_calls(step.calls, [tool.name for tool in self._tools])
        self._invalid_steps += any(isinstance(each, InvalidCall) for each in calls)
        plans = self._turn_tools.plan(calls, frozenset(self._queries))
        pending = _exchange(step, calls, map(self._turn_tools.estimate, plans))
        works = any(plan.work for plan in plans)
        room = self._conversation.budgets(self._tools, (pending,)).answer if works else 0
        finished = yield from self._run_plans(plans, room)
        self._conversation.add_exchange(_exchange(step, calls, self._show(finished)))
        if self._invalid_steps > MAX_INVALID_STEPS:
            yield from self._continue_without_tools()

    def _run_plans(
        self, plans: Sequence[PlannedCall], room: int
    ) -> Generator[ChatEvent, None, FinishedStep]:
        """Run what was planned; a search of documents that fails ends the turn only if there is nothing else."""
        deadline = self._turn.deadline.limited_to(self._dependencies.search_seconds)
        usual = Budgets.for_window(self._window)

        def search(work: InternalSearch, most: int) -> Generator[ChatEvent, None, SearchResult]:
            return self._search(work, replace(usual, answer=most))

        step = yield from self._turn_tools.run(plans, room, search, deadline)
        for work, outcome in step.outcomes.items():
            match work, outcome:
                case InternalSearch(queries), SearchResult() as result:
                    self._queries |= {*queries}
                    self._add_results(result)
                case InternalSearch(), TaskFailure(error) if not (
                    self._has_looked or self._dependencies.web
                ):
                    raise error
        self._has_looked |= bool(step.outcomes)
        return step

    def _search(
        self, work: InternalSearch, budgets: Budgets
    ) -> Generator[ChatEvent, None, SearchResult]:
        search = self._dependencies.search
        if search is None:
            raise ValueError("searching is off")
        request = self._search_request(work.queries, budgets)
        started, self._started = self._started, None
        events = search.complete(started, request) if started else search.run(request)
        return (yield from follow_search(events))

    def _add_results(self, result: SearchResult) -> None:
        self._searched = self._has_looked = True
        self._turn_tools.add_sections(result.sections)
        self._cite_result(result)

    def _show(self, step: FinishedStep) -> list[str]:
        """Return what the model is given about the calls of a step; what it is shown can be cited from then on."""
        replies = self._turn_tools.reply(step)
        for reply in replies:
            self._cite(reply.documents)
            for number, text in reply.shown:
                self._state.add_text(number, text)
        return [reply.text for reply in replies]


def _exchange(
    step: StepResult, calls: Sequence[ParsedCall], replies: Iterable[str]
) -> ToolExchange:
    """Pair the calls with their replies; servers require a result for every call."""
    results = [ToolResult(each.call.id, reply) for each, reply in zip(calls, replies, strict=True)]
    return ToolExchange(CallMessage(step.text, tuple(map(to_sendable_call, calls))), tuple(results))
