"""A turn: search and answer, by a model that decides what else to look for."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TypeAlias

from backend.chat import prompts
from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_processor import (
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
from backend.chat.events import AnswerDone, ChatEvent, Citation, Failed
from backend.chat.history import Conversation, MessageTooLongError, ToolExchange, TurnStart
from backend.chat.llm.client import (
    LanguageModel,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
    ToolsUnsupportedError,
)
from backend.chat.llm.messages import CallMessage, ForcedTool, ToolResult, ToolSpec
from backend.chat.llm_step import AnswerWriter, StepRequest, StepResult, run_llm_step
from backend.chat.tools import (
    INTERNAL_SEARCH,
    InvalidCall,
    SearchCall,
    queries_of,
    read_calls,
    to_sendable_call,
)
from backend.search.events import SearchDone, SearchEvent
from backend.search.llm_protocol import ChatMessage
from backend.search.models import SearchRequest, SearchResult
from backend.search.result_format import DocumentNumbers
from connectors.access import Readers
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.token_counting import CountTokens
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline, DeadlineExceededError

MAX_CYCLES = 6
MAX_INVALID_STEPS = 1
"""Steps with calls that cannot be run; after that the model has to do without tools."""

Search: TypeAlias = Callable[[SearchRequest], Iterator[SearchEvent]]
"""`SearchTool.run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTurn:
    """What is asked, by whom, until when."""

    message: str
    readers: Readers
    deadline: Deadline
    history: tuple[ChatMessage, ...] = ()
    """Oldest first, without the message."""
    filters: Filters = field(default_factory=Filters)
    files: tuple[ContextFile, ...] = ()
    today: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatParts:
    """With what a turn is answered."""

    model: LanguageModel
    count_tokens: CountTokens
    search: Search | None
    """None: searching is off."""
    numbers: DocumentNumbers
    """The same that the search has; made for this turn."""
    search_seconds: float = 30.0


def run_llm_loop(
    turn: ChatTurn, parts: ChatParts, state: ChatStateContainer
) -> Generator[ChatEvent, None, None]:
    """Answer a message from documents; the last event is AnswerDone or Failed.

    When searching is on and no files are read whole, the first step is made to search. A model that
    will not or cannot call tools is given the results of a search for the message itself.

    `state` is whole at every moment; closing the generator stops the turn and the model.
    """
    try:
        yield from _Turn(turn, parts, state).run()
    except _TurnFailedError as reason:
        yield state.fail(reason.failure)
    except ModelError as error:
        yield state.fail(Failed(str(error), _advice(error)))
    except MessageTooLongError:
        yield state.fail(_TOO_LONG)
    except (DeadlineExceededError, TemporarilyUnavailableError) as error:
        yield state.fail(Failed(f"The search did not answer. {error}", "Ask again."))
    except ActionRequiredError as error:
        yield state.fail(Failed("The search cannot answer.", str(error)))
    finally:
        state.stop_if_running()


class _TurnFailedError(Exception):
    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.message)
        self.failure = failure


class _Turn:
    """A turn under way."""

    def __init__(self, turn: ChatTurn, parts: ChatParts, state: ChatStateContainer) -> None:
        self._turn = turn
        self._parts = parts
        self._state = state
        self._window = parts.model.settings.prompt_tokens
        self._files = resolve_context_user_files(turn.files, self._window, parts.count_tokens)
        loaded = load_in_memory_chat_files(self._files, parts.numbers)
        self._processor = DynamicCitationProcessor()
        self._processor.update_citation_mapping(build_context_file_citation_mapping(loaded))
        state.add_documents(build_context_file_citation_mapping(loaded))
        self._reads_files = bool(loaded)
        self._conversation = self._open(loaded)
        self._tools: tuple[ToolSpec, ...] = (INTERNAL_SEARCH,) if parts.search else ()
        self._searched = False
        self._queries: set[str] = set()
        self._mistakes = 0

    def _open(self, loaded: Sequence[ContextFileMetadata]) -> Conversation:
        reads = self._parts.search is not None or bool(loaded)
        opening = TurnStart(
            duties=(prompts.FROM_DOCUMENTS,) if reads else (),
            today=self._turn.today,
            history=self._turn.history,
            message=self._turn.message,
            files=files_for_model(self._files, loaded),
        )
        return Conversation(opening, self._window, self._parts.count_tokens)

    def run(self) -> Generator[ChatEvent, None, None]:
        if self._files.use_as_search_filter and not self._tools:
            raise _TurnFailedError(_FILES_TOO_LONG)
        for cycle in range(MAX_CYCLES):
            if cycle == MAX_CYCLES - 1:
                self._tools = ()
            result = yield from self._step()
            if result is None:
                yield from self._do_without_tools()
            elif result.calls and self._tools:
                yield from self._call(result)
            elif result.text.strip():
                yield self._done(result)
                return
            elif self._tools:
                self._tools = ()
            else:
                break
        raise _TurnFailedError(_EMPTY)

    def _step(self) -> Generator[ChatEvent, None, StepResult | None]:
        """None where a model that has to search does not, or cannot."""
        forced = bool(self._tools) and not self._searched and not self._reads_files
        request = StepRequest(
            self._conversation.messages(self._tools),
            self._turn.deadline,
            self._tools,
            ForcedTool(INTERNAL_SEARCH.name) if forced else "auto",
        )
        answer = AnswerWriter(self._processor, self._state)
        try:
            result = yield from run_llm_step(self._parts.model, request, answer)
        except ToolsUnsupportedError:
            return None
        if result.finish == "content_filter":
            raise _TurnFailedError(_FILTERED)
        return None if forced and not result.calls else result

    def _do_without_tools(self) -> Generator[ChatEvent, None, None]:
        """Search for the message itself, if nothing was searched yet, and only answer from now on."""
        self._tools = ()
        if not self._searched:
            result = yield from self._search((), ())
            self._conversation.put_results(_shown(result))

    def _call(self, step: StepResult) -> Generator[ChatEvent, None, None]:
        """Run the calls of a step: all searches as one; mistakes are told to the model once."""
        calls = read_calls(step.calls)
        told = {each.call.id: each.told for each in calls if isinstance(each, InvalidCall)}
        self._mistakes += bool(told)
        searches = [each for each in calls if isinstance(each, SearchCall)]
        queries = [query for query in queries_of(searches) if query not in self._queries]
        told |= {each.call.id: prompts.SEARCHED_ALREADY for each in searches}
        if queries:
            told |= {each.call.id: prompts.WITH_THE_FIRST for each in searches}
            pending = _exchange(step, calls, told)
            told[searches[0].call.id] = yield from self._look(tuple(queries), pending)
        self._conversation.add_exchange(_exchange(step, calls, told))
        if self._mistakes > MAX_INVALID_STEPS:
            yield from self._do_without_tools()

    def _look(
        self, queries: tuple[str, ...], pending: ToolExchange
    ) -> Generator[ChatEvent, None, str]:
        """What the model is told of a search; one that fails costs the turn only if it is the first."""
        try:
            result = yield from self._search(queries, (pending,))
        except (DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError):
            if not self._searched:
                raise
            return prompts.SEARCH_FAILED
        return _shown(result)

    def _search(
        self, queries: tuple[str, ...], pending: Sequence[ToolExchange]
    ) -> Generator[ChatEvent, None, SearchResult]:
        turn, search = self._turn, self._parts.search
        if search is None:
            raise ValueError("searching is off")
        request = SearchRequest(
            message=turn.message,
            readers=turn.readers,
            deadline=turn.deadline.limited_to(self._parts.search_seconds),
            budgets=self._conversation.budgets(self._tools, pending),
            history=turn.history,
            model_queries=queries,
            filters=self._files.narrow(turn.filters),
        )
        for event in search(request):
            yield event
            if isinstance(event, SearchDone):
                self._found(event.result, queries)
                return event.result
        raise ValueError("the search ended without SearchDone")

    def _found(self, result: SearchResult, queries: tuple[str, ...]) -> None:
        self._searched = True
        self._queries |= {*queries}
        update_citation_processor_from_tool_response(self._processor, result)
        self._state.add_found(result)

    def _done(self, step: StepResult) -> AnswerDone:
        documents = self._processor.get_seen_citations()
        answer = AnswerDone(
            text=self._state.record().text,
            plain=self._processor.get_plain_text(),
            citations=tuple(
                _citation(cited, documents[cited.number])
                for cited in self._processor.get_cited_sentences()
            ),
            model=self._parts.model.settings.model,
            cut=step.finish == "length",
        )
        self._state.finish(answer)
        return answer


def _exchange(
    step: StepResult, calls: Sequence[SearchCall | InvalidCall], told: Mapping[str, str]
) -> ToolExchange:
    """The calls with what is told of each; a server wants a result for every one."""
    results = tuple(ToolResult(each.call.id, told[each.call.id]) for each in calls)
    return ToolExchange(CallMessage(step.text, tuple(map(to_sendable_call, calls))), results)


def _shown(result: SearchResult) -> str:
    return result.for_model or prompts.NOTHING_FITS


def _citation(cited: CitedSentence, document: CitedDocument) -> Citation:
    return Citation(
        number=cited.number,
        document_id=document.document_id,
        title=document.title,
        link=document.link,
        sentence=cited.sentence,
        claim=cited.claim,
    )


def _advice(error: ModelError) -> str:
    match error:
        case ModelUnavailableError(retry_after=after) if after:
            return f"Ask again in {after.total_seconds():.0f} seconds."
        case ModelRequestError():
            return "Tell whoever runs Quarry to correct this setting."
        case _:
            return "Ask again."


_TOO_LONG = Failed(
    "The message is too long for the language model.",
    "Shorten it, or put the text into a document and ask about that.",
)
_FILES_TOO_LONG = Failed(
    "The files are too long for the language model to read whole, and searching is off.",
    "Switch the search on, or ask about fewer or shorter files.",
)
_EMPTY = Failed("The language model gave no answer.", "Ask again, in other words if need be.")
_FILTERED = Failed("The language model's provider withheld the answer.", "Ask in other words.")
