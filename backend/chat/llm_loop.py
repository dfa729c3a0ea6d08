"""Agent mode: a loop in which the model decides what to search for, until it answers."""

from collections.abc import Generator, Mapping, Sequence

from backend.chat import prompts
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import SEARCH_ERRORS, ChatEvent
from backend.chat.history import ToolExchange
from backend.chat.llm.messages import CallMessage, ToolResult
from backend.chat.llm_step import ModelStream, StepRequest, StepResult, start_stream
from backend.chat.model_turn import EMPTY, FILES_TOO_LONG, ModelTurn, TurnFailedError
from backend.chat.tools import (
    INTERNAL_SEARCH,
    InvalidCall,
    SearchCall,
    merge_queries,
    note_left_out,
    parse_calls,
    to_sendable_call,
)
from backend.chat.turn import ChatDependencies, ChatTurn
from backend.search.models import Budgets, SearchResult
from backend.search.retrieval import MAX_MODEL_QUERIES
from backend.search.search_tool import StartedSearch, follow_search

MAX_CYCLES = 6
MAX_INVALID_STEPS = 1
"""Steps with calls that cannot be run; after these the model gets no tools."""
PREAMBLE_CHARACTERS = 200
"""What a model says before its first search ("I will look that up") is no part of the answer."""


def run_llm_loop(
    turn: ChatTurn, dependencies: ChatDependencies, state: ChatStateContainer
) -> Generator[ChatEvent, None, None]:
    """Answer a message from documents; the last event is AnswerDone or TurnFailed.

    If searching is on, the message is searched while the first step runs. The step decides: if it calls
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
        self._tools = (INTERNAL_SEARCH,) if dependencies.search else ()
        self._begun = False
        self._started: StartedSearch | None = None
        """The search of the message, until its results are used."""
        self._queries: set[str] = set()
        self._invalid_steps = 0

    def _answer(self) -> Generator[ChatEvent, None, None]:
        if self._files.use_as_search_filter and not self._tools:
            raise TurnFailedError(FILES_TOO_LONG)
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

    @property
    def _preamble(self) -> int:
        return PREAMBLE_CHARACTERS if self._tools and not self._searched else 0

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
        if not self._searched:
            result = yield from self._search((), ())
            self._conversation.put_results(_text_for_model(result))

    def _run_calls(self, step: StepResult) -> Generator[ChatEvent, None, None]:
        """Run the calls of a step, all searches as one; invalid calls may be corrected once."""
        calls = parse_calls(step.calls)
        replies = {each.call.id: each.message for each in calls if isinstance(each, InvalidCall)}
        self._invalid_steps += bool(replies)
        searches = [each for each in calls if isinstance(each, SearchCall)]
        fresh = [query for query in merge_queries(searches) if query not in self._queries]
        queries = tuple(fresh[:MAX_MODEL_QUERIES])
        notes = {each.call.id: note_left_out(each, {*queries, *self._queries}) for each in searches}
        reply = prompts.WITH_THE_FIRST if queries else prompts.SEARCHED_ALREADY
        replies |= {identity: reply + note for identity, note in notes.items()}
        if queries:
            first, pending = searches[0].call.id, _exchange(step, calls, replies)
            results = yield from self._search_again(queries, pending)
            replies[first] = results + notes[first]
        self._conversation.add_exchange(_exchange(step, calls, replies))
        if self._invalid_steps > MAX_INVALID_STEPS:
            yield from self._continue_without_tools()

    def _search_again(
        self, queries: tuple[str, ...], pending: ToolExchange
    ) -> Generator[ChatEvent, None, str]:
        """Return the reply to a search call; a search that fails ends the turn only if it is the first."""
        try:
            result = yield from self._search(queries, (pending,))
        except SEARCH_ERRORS:
            if not self._searched:
                raise
            return prompts.SEARCH_FAILED
        return _text_for_model(result)

    def _search(
        self, queries: tuple[str, ...], pending: Sequence[ToolExchange]
    ) -> Generator[ChatEvent, None, SearchResult]:
        search = self._dependencies.search
        if search is None:
            raise ValueError("searching is off")
        budgets = self._conversation.budgets(self._tools, pending)
        request = self._search_request(queries, budgets)
        started, self._started = self._started, None
        events = search.complete(started, request) if started else search.run(request)
        result = yield from follow_search(events)
        self._add_results(result, queries)
        return result

    def _add_results(self, result: SearchResult, queries: tuple[str, ...]) -> None:
        self._searched = True
        self._queries |= {*queries}
        self._cite_result(result)


def _exchange(
    step: StepResult, calls: Sequence[SearchCall | InvalidCall], replies: Mapping[str, str]
) -> ToolExchange:
    """Pair the calls with their replies; servers require a result for every call."""
    results = tuple(ToolResult(each.call.id, replies[each.call.id]) for each in calls)
    return ToolExchange(CallMessage(step.text, tuple(map(to_sendable_call, calls))), results)


def _text_for_model(result: SearchResult) -> str:
    return result.for_model or prompts.NOTHING_FITS
