"""Run a turn: search and answer, with a model that decides what else to search for."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from backend.chat import prompts
from backend.chat.assistant_settings import PLAIN, AssistantSettings
from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_processor import (
    CitationMode,
    CitedDocument,
    DynamicCitationProcessor,
    update_citation_processor_from_tool_response,
)
from backend.chat.citations.cited_sentences import CitedSentence
from backend.chat.context_files import (
    ContextFile,
    ContextFileMetadata,
    build_context_file_citation_mapping,
    files_for_model,
    load_in_memory_chat_files,
    resolve_context_user_files,
)
from backend.chat.events import SEARCH_ERRORS, AnswerDone, ChatEvent, Citation, TurnFailed
from backend.chat.history import (
    Conversation,
    MessageTooLongError,
    ToolExchange,
    TurnStart,
    without_citations,
)
from backend.chat.llm.client import (
    ChatModel,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
    ToolsUnsupportedError,
)
from backend.chat.llm.messages import (
    CUT_REASONS,
    CallMessage,
    ToolResult,
    ToolSpec,
)
from backend.chat.llm_step import (
    AnswerWriter,
    ModelStream,
    StepRequest,
    StepResult,
    open_stream,
    run_llm_step,
    start_stream,
)
from backend.chat.pictures import Picture
from backend.chat.tools import (
    INTERNAL_SEARCH,
    InvalidCall,
    SearchCall,
    merge_queries,
    note_left_out,
    parse_calls,
    to_sendable_call,
)
from backend.search.events import StepFailed
from backend.search.llm_protocol import ChatMessage
from backend.search.models import Budgets, DocumentNumbers, SearchRequest, SearchResult
from backend.search.retrieval import MAX_MODEL_QUERIES
from backend.search.search_tool import SearchTool, StartedSearch, follow_search
from connectors.access import Readers
from indexing.embedding.token_counting import CountTokens
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline
from indexing.text.markdown_links import safe_link

MAX_CYCLES = 6
MAX_INVALID_STEPS = 1
"""Steps with calls that cannot be run; after these the model gets no tools."""
PREAMBLE_CHARACTERS = 200
"""What a model says before its first search ("I will look that up") is no part of the answer."""
FIRST_EVENT_SECONDS = 30.0
FIRST_EVENT_SHARE = 0.5
"""Where another model may take over, one is waited for so many seconds, or this share of the time left, whichever is
less; one that reasons is waited for that share."""
REPLACED = "language_model"
"""The step that is lost where another model takes over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """A message to be answered: by whom, and until when."""

    message: str
    readers: Readers
    deadline: Deadline
    person_id: int
    """Whose tokens are counted; `NOBODY` for the person at the machine and for service tokens."""
    history: tuple[ChatMessage, ...] = ()
    """Oldest first, without the message."""
    summary: str = ""
    """Of what was said before the history."""
    filters: Filters = field(default_factory=Filters)
    files: tuple[ContextFile, ...] = ()
    pictures: tuple[Picture, ...] = ()
    """Shown to a model that sees."""
    today: date | None = None
    assistant: AssistantSettings = PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatDependencies:
    """What answers a turn."""

    model: ChatModel
    count_tokens: CountTokens
    search: SearchTool | None
    """None turns searching off."""
    numbers: DocumentNumbers
    """Shared with the search; made for this turn."""
    infer: Callable[[SearchRequest], SearchRequest] = lambda request: request
    """Reads words of the message as filters."""
    search_seconds: float = 30.0
    fallback: ChatModel | None = None
    """Takes over where the model fails before the first token of the answer."""
    selection_tokens: int | None = None
    """The most that the model which selects is shown; None where it is the one that answers."""


def run_llm_loop(
    turn: ChatTurn, dependencies: ChatDependencies, state: ChatStateContainer
) -> Generator[ChatEvent, None, None]:
    """Answer a message from documents; the last event is AnswerDone or TurnFailed.

    If searching is on, the message is searched while the first step runs. The step decides: if it calls
    the search, its queries join that search; if it answers, as a greeting, what was found is not used. A
    model that cannot call tools, or does not manage to, is given the results of the message itself.

    `state` is complete at every moment; closing the generator stops the turn and the model.
    """
    running = _Turn(turn, dependencies, state)
    try:
        yield from running.run()
    except _TurnFailedError as reason:
        yield state.fail(reason.failure)
    except ModelError as error:
        yield state.fail(
            TurnFailed(
                error.summary, _advice(error), by_model=True, citations=running.read_citations()
            )
        )
    except MessageTooLongError:
        yield state.fail(_TOO_LONG)
    except SEARCH_ERRORS as error:
        yield state.fail(TurnFailed.from_search_error(error))
    finally:
        state.stop_if_running()


class _TurnFailedError(Exception):
    def __init__(self, failure: TurnFailed) -> None:
        super().__init__(failure.message)
        self.failure = failure


class _Turn:
    """A running turn."""

    def __init__(
        self, turn: ChatTurn, dependencies: ChatDependencies, state: ChatStateContainer
    ) -> None:
        self._turn = turn = replace(turn, history=without_citations(turn.history))
        self._dependencies = dependencies
        self._state = state
        self._model, self._fallback = dependencies.model, dependencies.fallback
        self._window = self._model.settings.prompt_tokens
        self._files = resolve_context_user_files(
            turn.files, self._window, dependencies.count_tokens
        )
        loaded = load_in_memory_chat_files(self._files, dependencies.numbers)
        self._has_documents = dependencies.search is not None or bool(loaded)
        # Where there is nothing to cite, a number in brackets is no citation.
        mode = CitationMode.HYPERLINK if self._has_documents else CitationMode.KEEP_MARKERS
        self._processor = DynamicCitationProcessor(mode)
        self._processor.update_citation_mapping(build_context_file_citation_mapping(loaded))
        state.add_documents(build_context_file_citation_mapping(loaded))
        self._conversation = self._start_conversation(loaded)
        self._tools: tuple[ToolSpec, ...] = (INTERNAL_SEARCH,) if dependencies.search else ()
        self._begun = False
        self._started: StartedSearch | None = None
        """The search of the message, until its results are used."""
        self._searched = False
        self._queries: set[str] = set()
        self._invalid_steps = 0

    def _start_conversation(self, loaded: Sequence[ContextFileMetadata]) -> Conversation:
        start = TurnStart(
            instructions=(prompts.FROM_DOCUMENTS,) if self._has_documents else (),
            today=self._turn.today,
            history=self._turn.history,
            summary=self._turn.summary,
            message=self._turn.message,
            files=files_for_model(self._files, loaded),
            assistant=self._turn.assistant.instructions,
            project=self._turn.assistant.project_instructions,
            pictures=self._turn.pictures if self._model.settings.sees_pictures else (),
        )
        return Conversation(start, self._window, self._dependencies.count_tokens)

    def run(self) -> Generator[ChatEvent, None, None]:
        if self._files.use_as_search_filter and not self._tools:
            raise _TurnFailedError(_FILES_TOO_LONG)
        with self._turn.deadline.ended_with_block() as deadline:
            self._turn = replace(self._turn, deadline=deadline)
            yield from self._run_cycles()

    def _run_cycles(self) -> Generator[ChatEvent, None, None]:
        if self._tools and not self._model.settings.calls_tools:
            self._begun = True
            yield from self._continue_without_tools()
        for cycle in range(MAX_CYCLES):
            if cycle == MAX_CYCLES - 1:
                self._tools = ()
            result = yield from self._step()
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
        raise _TurnFailedError(_EMPTY)

    def _step(self) -> Generator[ChatEvent, None, StepResult | None]:
        """Run a step, again with the fallback if the model fails; None if the model cannot call tools."""
        try:
            return (yield from self._try_step())
        except ModelError as error:
            failure = error
        if not self._take_fallback():
            raise failure
        yield StepFailed(REPLACED, f"{failure.summary} Another one answers instead.")
        try:
            if not self._model.settings.calls_tools:
                self._conversation.put_exchanges()
                yield from self._continue_without_tools()
            return (yield from self._try_step())
        except MessageTooLongError:
            # What the first one could read does not fit the other one.
            raise failure from None

    def _take_fallback(self) -> bool:
        """Let the fallback go on with the turn; False where there is none, or the answer has begun."""
        fallback, self._fallback = self._fallback, None
        if fallback is None or self._state.has_text or not self._turn.deadline.remaining():
            return False
        self._model, self._window = fallback, fallback.settings.prompt_tokens
        self._conversation.fit_window(self._window)
        if not fallback.settings.sees_pictures:
            self._conversation.leave_out_pictures()
        self._state.replace_model(fallback.settings.shown_name)
        return True

    def _try_step(self) -> Generator[ChatEvent, None, StepResult | None]:
        messages = self._conversation.messages(self._tools)
        request = StepRequest(messages, self._turn.deadline, self._tools)
        preamble = PREAMBLE_CHARACTERS if self._tools and not self._searched else 0
        stream = yield from self._open_step(request)
        answer = AnswerWriter(self._processor, self._state)
        try:
            result = yield from run_llm_step(stream, preamble, answer)
        except ToolsUnsupportedError:
            return None
        if result.finish == "content_filter":
            raise _TurnFailedError(_FILTERED)
        return result

    def _open_step(self, request: StepRequest) -> Generator[ChatEvent, None, ModelStream]:
        """Ask the model, and search the message while the first step runs."""
        model, search = self._model, self._dependencies.search
        begins, self._begun = search is not None and not self._begun, True
        if not begins and self._fallback is None:
            return open_stream(model, request)
        stream = start_stream(model, request, self._patience())
        if search is None or not begins:
            return stream
        try:
            usual = Budgets.for_window(self._window)
            self._started = yield from search.start(self._search_request((), usual))
        except SEARCH_ERRORS:
            # If the step wants results, the message is searched again, and a failure is then reported.
            self._started = None
        return stream

    def _patience(self) -> float | None:
        """Return the seconds to wait for a first event."""
        if self._fallback is None:
            return None
        share = self._turn.deadline.remaining() * FIRST_EVENT_SHARE
        return share if self._model.settings.reasons else min(FIRST_EVENT_SECONDS, share)

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

    def _search_request(self, queries: tuple[str, ...], budgets: Budgets) -> SearchRequest:
        turn = self._turn
        request = SearchRequest(
            message=turn.message,
            readers=turn.readers,
            deadline=turn.deadline.limited_to(self._dependencies.search_seconds),
            budgets=budgets.with_selection_of(self._dependencies.selection_tokens),
            history=turn.history,
            model_queries=queries,
            filters=self._files.restrict(turn.filters),
        )
        return self._dependencies.infer(request)

    def _add_results(self, result: SearchResult, queries: tuple[str, ...]) -> None:
        self._searched = True
        self._queries |= {*queries}
        update_citation_processor_from_tool_response(self._processor, result)
        self._state.add_results(result)

    def _finish(self, step: StepResult) -> AnswerDone:
        record = self._state.snapshot()
        answer = AnswerDone(
            text=record.text,
            plain=self._processor.get_plain_text(),
            citations=self.read_citations(),
            model=self._model.settings.shown_name,
            cut=step.finish in CUT_REASONS,
            uncited=tuple(self._processor.get_uncited_sentences()) if self._has_documents else (),
            documents=record.shown_documents,
        )
        self._state.finish(answer)
        return answer

    def read_citations(self) -> tuple[Citation, ...]:
        """Return the citations of what was written so far."""
        documents = self._processor.get_seen_citations()
        return tuple(
            _citation(cited, documents[cited.number])
            for cited in self._processor.get_cited_sentences()
        )


def _exchange(
    step: StepResult, calls: Sequence[SearchCall | InvalidCall], replies: Mapping[str, str]
) -> ToolExchange:
    """Pair the calls with their replies; servers require a result for every call."""
    results = tuple(ToolResult(each.call.id, replies[each.call.id]) for each in calls)
    return ToolExchange(CallMessage(step.text, tuple(map(to_sendable_call, calls))), results)


def _text_for_model(result: SearchResult) -> str:
    return result.for_model or prompts.NOTHING_FITS


def _citation(cited: CitedSentence, document: CitedDocument) -> Citation:
    return Citation(
        number=cited.number,
        document_id=document.document_id,
        title=document.title,
        link=safe_link(document.link),
        sentence=cited.sentence,
        claim=cited.claim,
    )


def _advice(error: ModelError) -> str:
    match error:
        case ModelUnavailableError(retry_after=after) if after:
            return f"Ask again in {after.total_seconds():.0f} seconds."
        case ModelRequestError():
            return "Ask the administrator of Quarry to correct this setting."
        case _:
            return "Ask again."


_TOO_LONG = TurnFailed(
    "The message is too long for the language model.",
    "Shorten it, or put the text into a document and ask about that.",
)
_FILES_TOO_LONG = TurnFailed(
    "The files are too long for the language model to read whole, and searching is off.",
    "Switch the search on, or ask about fewer or shorter files.",
)
_EMPTY = TurnFailed(
    "The language model gave no answer.", "Ask again, in other words if need be.", by_model=True
)
_FILTERED = TurnFailed("The language model's provider withheld the answer.", "Ask in other words.")
