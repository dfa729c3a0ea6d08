"""What every turn that a language model answers shares: its messages, its steps, and the answer with its citations."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

from backend.chat import prompts
from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_processor import (
    CitationMode,
    CitedDocument,
    DynamicCitationProcessor,
    update_citation_processor_from_tool_response,
)
from backend.chat.citations.cited_sentences import CitedSentence
from backend.chat.context_files import (
    ContextFileMetadata,
    build_context_file_citation_mapping,
    files_for_model,
    load_in_memory_chat_files,
    resolve_context_user_files,
)
from backend.chat.events import (
    SEARCH_ERRORS,
    AnswerDone,
    ChatEvent,
    Citation,
    FailureCause,
    TurnFailed,
)
from backend.chat.history import (
    Conversation,
    MessageTooLongError,
    TurnStart,
    without_citations,
)
from backend.chat.llm.client import (
    ModelError,
    ModelRequestError,
    ModelSetupError,
    ModelUnavailableError,
    ToolsUnsupportedError,
)
from backend.chat.llm.messages import CUT_REASONS, ToolSpec
from backend.chat.llm_step import (
    AnswerWriter,
    ModelStream,
    StepRequest,
    StepResult,
    open_stream,
    run_llm_step,
    start_stream,
)
from backend.chat.turn import ChatDependencies, ChatTurn
from backend.search.events import StepFailed
from backend.search.models import Budgets, SearchRequest, SearchResult, make_request
from indexing.text.markdown_links import safe_link

FIRST_EVENT_SECONDS = 30.0
FIRST_EVENT_SHARE = 0.5
"""Where another model may take over, one is waited for so many seconds, or this share of the time left, whichever is
less; one that reasons is waited for that share."""
REPLACED = "language_model"
"""The step that is lost where another model takes over."""


class TurnFailedError(Exception):
    """The turn ends without an answer."""

    def __init__(self, failure: TurnFailed) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ModelTurn:
    """A running turn. A mode says in `_answer` what leads to the answer."""

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
        self._loaded = load_in_memory_chat_files(self._files, dependencies.numbers)
        self._cites = bool(self._loaded) or self._may_search
        # Where there is nothing to cite, a number in brackets is no citation.
        mode = CitationMode.HYPERLINK if self._cites else CitationMode.KEEP_MARKERS
        self._processor = DynamicCitationProcessor(mode)
        self._cite(build_context_file_citation_mapping(self._loaded))
        self._conversation = self._start_conversation(self._loaded)
        self._tools: tuple[ToolSpec, ...] = ()
        self._searched = False

    @property
    def _searches_files(self) -> bool:
        """Whether files that came with questions are searched: without a search nothing of them is read."""
        return self._files.use_as_search_filter or self._turn.searches_files

    @property
    def _may_search(self) -> bool:
        """Whether documents may be found that an answer can cite."""
        return self._dependencies.search is not None

    @property
    def _instructions(self) -> tuple[str, ...]:
        """Return the rules of the system prompt."""
        return (prompts.FROM_DOCUMENTS,) if self._cites else ()

    def _answer(self) -> Generator[ChatEvent, None, None]:
        raise NotImplementedError

    def _follow_replacement(self) -> Generator[ChatEvent, None, None]:
        """Do what another model needs that goes on with the turn."""
        yield from ()

    def run(self) -> Generator[ChatEvent, None, None]:
        """Answer the message; the last event is AnswerDone or TurnFailed, and the record is complete at every moment."""
        try:
            with self._turn.deadline.ended_with_block() as deadline:
                self._turn = replace(self._turn, deadline=deadline)
                yield from self._answer()
        except TurnFailedError as reason:
            yield self._state.fail(reason.failure)
        except ModelError as error:
            yield self._state.fail(_make_failure(error, self._read_citations()))
        except MessageTooLongError:
            yield self._state.fail(_TOO_LONG)
        except SEARCH_ERRORS as error:
            yield self._state.fail(TurnFailed.from_search_error(error))
        finally:
            self._state.stop_if_running()

    def _start_conversation(self, loaded: Sequence[ContextFileMetadata]) -> Conversation:
        start = TurnStart(
            instructions=self._instructions,
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

    def _step(self, preamble: int = 0) -> Generator[ChatEvent, None, StepResult | None]:
        """Run a step, again with the fallback if the model fails; None if the model cannot call tools."""
        try:
            return (yield from self._try_step(preamble))
        except ModelError as error:
            failure = error
        if not self._take_fallback():
            raise failure
        yield StepFailed(REPLACED, f"{failure.summary} Another one answers instead.")
        try:
            yield from self._follow_replacement()
            return (yield from self._try_step(preamble))
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

    def _try_step(self, preamble: int) -> Generator[ChatEvent, None, StepResult | None]:
        messages = self._conversation.messages(self._tools)
        request = StepRequest(messages, self._turn.deadline, self._tools)
        stream = yield from self._open_step(request)
        answer = AnswerWriter(self._processor, self._state)
        try:
            result = yield from run_llm_step(stream, preamble, answer)
        except ToolsUnsupportedError:
            return None
        if result.finish == "content_filter":
            raise TurnFailedError(_WITHHELD)
        return result

    def _open_step(self, request: StepRequest) -> Generator[ChatEvent, None, ModelStream]:
        """Ask the model."""
        yield from ()
        if self._fallback is None:
            return open_stream(self._model, request)
        return start_stream(self._model, request, self._patience())

    def _patience(self) -> float | None:
        """Return the seconds to wait for a first event."""
        if self._fallback is None:
            return None
        share = self._turn.deadline.remaining() * FIRST_EVENT_SHARE
        return share if self._model.settings.reasons else min(FIRST_EVENT_SECONDS, share)

    def _search_request(self, queries: tuple[str, ...], budgets: Budgets) -> SearchRequest:
        turn = self._turn
        return make_request(
            turn.message,
            turn.readers,
            turn.deadline.limited_to(self._dependencies.search_seconds),
            budgets.with_selection_of(self._dependencies.selection_tokens),
            model_queries=queries,
            history=turn.history,
            filters=self._files.restrict(turn.filters),
            read=self._dependencies.infer,
        )

    def _cite(self, documents: Mapping[int, CitedDocument]) -> None:
        """Make documents citable under the numbers that the model is shown."""
        self._processor.update_citation_mapping(documents)
        self._state.add_documents(documents)

    def _cite_result(self, result: SearchResult) -> None:
        update_citation_processor_from_tool_response(self._processor, result)
        self._state.add_results(result)

    def _finish(self, step: StepResult) -> AnswerDone:
        record, citations = self._state.snapshot(), self._read_citations()
        uncited = tuple(self._processor.get_uncited_sentences())
        answer = AnswerDone(
            text=record.text,
            plain=self._processor.get_plain_text(),
            citations=citations,
            model=self._model.settings.shown_name,
            cut=step.finish in CUT_REASONS,
            uncited=uncited if self._cites else (),
            is_general_knowledge=bool(uncited) and not citations,
            documents=record.shown_documents,
        )
        self._state.finish(answer)
        return answer

    def _read_citations(self) -> tuple[Citation, ...]:
        """Return the citations of what was written so far."""
        documents = self._processor.get_seen_citations()
        return tuple(
            _citation(cited, documents[cited.number])
            for cited in self._processor.get_cited_sentences()
        )


def _citation(cited: CitedSentence, document: CitedDocument) -> Citation:
    return Citation(
        number=cited.number,
        document_id=document.document_id,
        title=document.title,
        link=safe_link(document.link),
        kind=document.kind,
        sentence=cited.sentence,
        claim=cited.claim,
    )


def _make_failure(error: ModelError, citations: tuple[Citation, ...]) -> TurnFailed:
    after = error.retry_after if isinstance(error, ModelUnavailableError) else None
    return TurnFailed(error.summary, _advice(error), _find_cause(error), citations, after)


def _find_cause(error: ModelError) -> FailureCause:
    return FailureCause.MODEL_SETUP if isinstance(error, ModelSetupError) else FailureCause.MODEL


def _advice(error: ModelError) -> str:
    match error:
        case ModelUnavailableError(retry_after=after) if after:
            return f"Ask again in {after.total_seconds():.0f} seconds."
        case ModelSetupError():
            return "Ask the administrator of Quarry to correct this setting."
        case ModelRequestError():
            return "Ask in other words. If that fails too, tell the administrator of Quarry."
        case _:
            return "Ask again."


FILES_TOO_LONG = TurnFailed(
    "The files are too long for the language model to read whole, and searching is off.",
    "Switch the search on, or ask about fewer or shorter files.",
    FailureCause.LENGTH,
)
EMPTY = TurnFailed(
    "The language model gave no answer.",
    "Ask again, in other words if need be.",
    FailureCause.MODEL,
)
_TOO_LONG = TurnFailed(
    "The message is too long for the language model.",
    "Shorten it, or put the text into a document and ask about that.",
    FailureCause.LENGTH,
)
_WITHHELD = TurnFailed(
    "The language model's provider withheld the answer.",
    "Ask in other words.",
    FailureCause.WITHHELD,
)
