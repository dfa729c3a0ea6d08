"""Chat mode: what the message needs is looked up first, and goes to the model with it as references."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import TypeAlias

from backend.chat import prompts
from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_processor import (
    CitationMode,
    DynamicCitationProcessor,
    SourceKind,
)
from backend.chat.events import SEARCH_ERRORS, ChatEvent, MemoriesShown, SearchPlanned
from backend.chat.history import MIN_RESULT_TOKENS, MessageTooLongError
from backend.chat.intent.intent_step import PendingIntent, start_intent_step
from backend.chat.intent.search_plan import (
    IntentRequest,
    NotNeeded,
    Queries,
    Searches,
    SearchPlan,
    Side,
    Summary,
    ask_message_itself,
    needs_no_search,
    plan_variants,
)
from backend.chat.model_turn import EMPTY, FILES_TOO_LONG, ModelTurn, TurnFailedError
from backend.chat.query_privacy import AllowedQuery, TurnTexts, keep_private_terms_out
from backend.chat.references import (
    Reference,
    drop_repeated,
    fit_references,
    format_references,
    format_web_list,
    keep_documents,
    make_document_references,
    make_file_references,
    make_memory_references,
    make_picture_references,
    map_references,
    number_references,
)
from backend.chat.turn import ChatDependencies, ChatTurn
from backend.chat.turn_mode import ChatMode
from backend.chat.web_lookup import CheckQuery, WebLookup, WebReferences, start_web_lookup
from backend.search.events import StepFailed
from backend.search.futures import PendingCompletion, run_in_background
from backend.search.llm_protocol import CompletionError
from backend.search.models import (
    Budgets,
    DocumentNumbers,
    InferenceSection,
    SearchRequest,
    SearchResult,
    VariantQuery,
)
from backend.search.search_tool import (
    SearchTool,
    StartedSearch,
    follow_search,
    start_keyword_expansion,
)
from backend.store.memories import Memory
from connectors.access import PUBLIC
from indexing.runtime.deadline import Deadline, DeadlineExceededError

WEB_SHARE = 0.3
"""Of the room for what is looked up on both sides, what references of the web may take."""
LOOKUP_SHARE = 0.5
"""Of the time left, after which a look-up is given up: the model needs the rest to answer."""
MEMORY_SECONDS = 2.0
ROOM_SHARE = 0.9
"""Of what the window has left, what is looked up may take; the rest is for the notes and the frames of references."""
INTENT, KNOWLEDGE, MEMORY = "intent", "knowledge", "memory"
"""The steps that are lost where no plan was written in time, the documents could not be searched, or the memories not read."""

_Started: TypeAlias = StartedSearch | DeadlineExceededError | None
"""A search of the message; what ended it, where it was late; None where there is none, or it failed."""


def run_chat_mode(
    turn: ChatTurn, mode: ChatMode, dependencies: ChatDependencies, state: ChatStateContainer
) -> Generator[ChatEvent, None, None]:
    """Answer a message from what was looked up for it; the last event is AnswerDone or TurnFailed.

    The message is searched in company knowledge while a model writes what else to ask, of the documents and of the web; both are
    then searched side by side. Where one side fails, the other answers.

    `state` is complete at every moment; closing the generator stops the turn and the model.
    """
    yield from _ChatModeTurn(turn, mode, dependencies, state).run()


@dataclass(frozen=True, slots=True)
class _Found:
    """What was looked up for a message; its references in the order of their numbers, files that are read whole first."""

    references: Sequence[Reference] = ()
    result: SearchResult | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Room:
    """Tokens for what is found on each side."""

    web: int
    knowledge: int

    @classmethod
    def share(cls, room: int, plan: SearchPlan) -> "_Room":
        if _find_knowledge_queries(plan) is None:
            return cls(web=room, knowledge=0)
        web = int(room * WEB_SHARE) if _asks_web(plan) else 0
        return cls(web=web, knowledge=room - web)


class _ChatModeTurn(ModelTurn):
    def __init__(
        self,
        turn: ChatTurn,
        mode: ChatMode,
        dependencies: ChatDependencies,
        state: ChatStateContainer,
    ) -> None:
        self._mode = mode
        on = {Side.KNOWLEDGE: dependencies.search, Side.WEB: dependencies.web}
        self._sides = frozenset(side for side in mode.sides if on[side] is not None)
        self._complete = dependencies.complete if mode.rewrites else None
        self._found = _Found()
        super().__init__(turn, dependencies, state)

    @property
    def _may_search(self) -> bool:
        return bool(self._sides)

    @property
    def _stays_with_references(self) -> bool:
        """Whether gaps of company knowledge are left open: where nothing else is asked."""
        return self._sides == {Side.KNOWLEDGE}

    @property
    def _instructions(self) -> tuple[str, ...]:
        return self._reference_rules if self._cites else ()

    @property
    def _reference_rules(self) -> tuple[str, ...]:
        alone = self._stays_with_references
        rest = prompts.FROM_REFERENCES_ALONE if alone else prompts.WITH_GENERAL_KNOWLEDGE
        return (prompts.FROM_REFERENCES, rest)

    def _answer(self) -> Generator[ChatEvent, None, None]:
        if self._files.use_as_search_filter and Side.KNOWLEDGE not in self._sides:
            raise TurnFailedError(FILES_TOO_LONG)
        self._found = found = yield from self._look_up()
        shown = self._show(found)
        if not shown:
            self._conversation.add_notes(_describe_nothing(found))
        elif not self._cites:
            self._cite_after_all(shown)
        if memories := [one for one in shown if one.kind is SourceKind.MEMORY]:
            yield MemoriesShown(tuple(one.document.document_id for one in memories))
        result = yield from self._step()
        if result is None or not result.text.strip():
            raise TurnFailedError(EMPTY)
        yield self._finish(result)

    def _look_up(self) -> Generator[ChatEvent, None, _Found]:
        room = self._find_room()
        intent, memories = self._start_intent(), self._start_memories()
        known = intent.known_plan and self._search_files(intent.known_plan)
        lookup = self._start_web(known, room, AllowedQuery) if known else None
        started = yield from self._start_search(known, room)
        done = intent.result()
        if done.failure:
            yield StepFailed(INTENT, done.failure)
        plan = known or self._search_files(done.plan)
        if self._sides:
            yield SearchPlanned(plan)
        if not known:
            lookup = self._start_web(plan, room, self._make_query_check(started))
        result, lost = yield from self._search_documents(plan, started, room)
        of_web = yield from self._follow_web(lookup, plan, room)
        remembered = yield from self._take_memories(memories)
        return self._join(result, of_web, remembered, lost)

    def _find_room(self) -> int:
        """Return the tokens for what is looked up.

        Raises:
            MessageTooLongError: there is no space for it.
        """
        files = make_file_references(self._loaded, self._files.files) if self._loaded else ()
        left = self._conversation.room_beside(self._write_prompt(files, ()))
        if self._sides and left < MIN_RESULT_TOKENS:
            raise MessageTooLongError
        return min(Budgets.for_window(self._window).answer, int(left * ROOM_SHARE))

    def _start_intent(self) -> PendingIntent:
        request = IntentRequest(
            message=self._turn.message, sides=self._sides, history=self._turn.history
        )
        today = self._turn.today or date.today()
        return start_intent_step(request, self._complete, today, self._turn.deadline)

    def _search_files(self, plan: SearchPlan) -> SearchPlan:
        """Search files that are too long to be read whole: the model that plans does not know of them."""
        match plan:
            case Searches(knowledge=NotNeeded()) if self._files.use_as_search_filter:
                return replace(plan, knowledge=ask_message_itself(self._turn.message))
            case _:
                return plan

    def _limit_lookup(self) -> Deadline:
        deadline = self._turn.deadline
        seconds = min(self._dependencies.search_seconds, deadline.remaining() * LOOKUP_SHARE)
        return deadline.limited_to(seconds)

    def _start_memories(self) -> PendingCompletion[Sequence[Memory]] | None:
        find = self._dependencies.find_memories
        if find is None or needs_no_search(self._turn.message):
            return None
        deadline = self._turn.deadline.limited_to(MEMORY_SECONDS)
        return run_in_background(partial(find, self._turn.message, deadline), deadline)

    def _take_memories(
        self, pending: PendingCompletion[Sequence[Memory]] | None
    ) -> Generator[ChatEvent, None, Sequence[Memory]]:
        if pending is None:
            return ()
        try:
            return pending.result()
        except CompletionError as error:
            yield StepFailed(MEMORY, str(error))
            return ()

    def _start_web(self, plan: SearchPlan, room: int, check: CheckQuery) -> WebLookup | None:
        web = self._dependencies.web
        if web is None or Side.WEB not in self._sides:
            return None
        return start_web_lookup(web, plan, _Room.share(room, plan).web, self._limit_lookup(), check)

    def _make_query_check(self, started: _Started) -> CheckQuery:
        """Return what keeps out of the questions of a model what only documents say that not everybody may read.

        It has read no document, but answers of earlier turns that rest on them.
        """
        web = self._dependencies.web
        if web is None or not isinstance(started, StartedSearch):
            return AllowedQuery
        if not web.search.keeps_internal_names:
            return AllowedQuery
        said = (one.text for one in self._turn.history if one.role == "user")
        texts = _read_texts(started.ranking.sections, (self._turn.message, *said))
        return partial(keep_private_terms_out, texts=texts)

    def _follow_web(
        self, lookup: WebLookup | None, plan: SearchPlan, room: int
    ) -> Generator[ChatEvent, None, WebReferences]:
        """Return what the web holds, as much of it as fits; numbered once all is known."""
        if lookup is None:
            return WebReferences()
        found = yield from lookup.follow(DocumentNumbers())
        most = _Room.share(room, plan).web
        fitting = fit_references(found.references, most, self._dependencies.count_tokens)
        return replace(found, references=tuple(fitting))

    def _start_search(
        self, known: SearchPlan | None, room: int
    ) -> Generator[ChatEvent, None, _Started]:
        """Search the message itself; where that fails, it is tried again once the plan says that it is needed."""
        search = self._search
        if search is None or (known and _find_knowledge_queries(known) is None):
            return None
        request = self._request(room)
        calls = start_keyword_expansion(request, self._complete)
        try:
            return (yield from search.start(request, calls=calls))
        except DeadlineExceededError as error:
            return error
        except SEARCH_ERRORS:
            return None

    def _request(self, room: int) -> SearchRequest:
        budgets = replace(Budgets.for_window(self._window), answer=room)
        return replace(self._search_request((), budgets), deadline=self._limit_lookup())

    @property
    def _search(self) -> SearchTool | None:
        return self._dependencies.search if Side.KNOWLEDGE in self._sides else None

    def _search_documents(
        self, plan: SearchPlan, started: _Started, room: int
    ) -> Generator[ChatEvent, None, tuple[SearchResult | None, tuple[str, ...]]]:
        """Return what the documents hold, and what was lost; with the web beside it, a search that fails loses only its own."""
        search, asked = self._search, _find_knowledge_queries(plan)
        if search is None or asked is None:
            return None, ()
        request = self._request(_Room.share(room, plan).knowledge)
        try:
            if isinstance(started, DeadlineExceededError):
                raise started
            if started is None:
                started = yield from search.start(request, calls={})
            events = search.complete(started, request, asked)
            return (yield from follow_search(events)), ()
        except SEARCH_ERRORS as error:
            if Side.WEB not in self._sides:
                raise
            yield StepFailed(KNOWLEDGE, str(error))
            return None, (prompts.KNOWLEDGE_FAILED,)

    def _join(
        self,
        result: SearchResult | None,
        of_web: WebReferences,
        memories: Sequence[Memory],
        lost: tuple[str, ...],
    ) -> _Found:
        sees = self._model.settings.sees_pictures
        references = (
            *(make_file_references(self._loaded, self._files.files) if self._loaded else ()),
            *of_web.references,
            *(make_document_references(result) if result else ()),
            *make_memory_references(memories),
            *make_picture_references(self._turn.pictures if sees else ()),
        )
        notes = (*_describe_result(result), *lost, *of_web.notes)
        return _Found(drop_repeated(references), result, notes)

    def _show(self, found: _Found) -> tuple[Reference, ...]:
        """Put the references that fit into the message, and make them citable; without any it goes as it is."""
        files = [one for one in found.references if one.kind is SourceKind.FILE]
        room = self._conversation.room_beside(self._write_prompt(files, found.notes))
        others = [one for one in found.references if one.kind is not SourceKind.FILE]
        fitting = fit_references(others, room, self._dependencies.count_tokens)
        shown = number_references([*files, *fitting], self._dependencies.numbers)
        self._conversation.put_references(self._write_prompt(shown, found.notes) if shown else "")
        self._cite(map_references(shown))
        if found.result is not None:
            self._state.add_results(keep_documents(found.result, shown))
        for one in shown:
            if one.kind in {SourceKind.WEB, SourceKind.MEMORY}:
                self._state.add_text(one.number, one.content)
        return shown

    def _cite_after_all(self, shown: Sequence[Reference]) -> None:
        """Cite memories and pictures, where nothing is searched."""
        self._processor = DynamicCitationProcessor(CitationMode.HYPERLINK)
        self._cite(map_references(shown))
        self._conversation.add_notes(self._reference_rules)

    def _follow_replacement(self) -> Generator[ChatEvent, None, None]:
        """Show another model as many of the references as its window holds, and pictures only where it sees them."""
        yield from ()
        sees = self._model.settings.sees_pictures
        kept = [one for one in self._found.references if sees or one.kind is not SourceKind.PICTURE]
        self._show(replace(self._found, references=kept))

    def _write_prompt(self, references: Sequence[Reference], notes: Sequence[str]) -> str:
        gaps = prompts.GAPS_STAY if self._stays_with_references else prompts.GAPS_FILLED
        text = self._format(references)
        return prompts.references_prompt(self._turn.message, text, notes, gaps)

    def _format(self, references: Sequence[Reference]) -> str:
        """Format the references as one array; results of a message that is searched as it stands are a list."""
        of_web = [one for one in references if one.kind is SourceKind.WEB]
        if self._mode.rewrites or not of_web:
            return format_references(references)
        rest = [one for one in references if one.kind is not SourceKind.WEB]
        listed = format_web_list(of_web)
        return f"{listed}\n\n{format_references(rest)}" if rest else listed


def _find_knowledge_queries(plan: SearchPlan) -> list[VariantQuery] | None:
    """Return what the documents are asked besides the message itself; None where they are not asked."""
    match plan:
        case Searches(knowledge=Queries() as asked):
            return plan_variants(asked)
        case Searches() | Summary():
            return None


def _asks_web(plan: SearchPlan) -> bool:
    return bool(plan.links) or (isinstance(plan, Searches) and isinstance(plan.web, Queries))


def _describe_result(result: SearchResult | None) -> tuple[str, ...]:
    """Return what the model has to know of a result; where nothing was found, the search says it."""
    if result is None:
        return ()
    if not (result.note or result.sections):
        return (prompts.NOTHING_FITS,)
    return (result.note,) if result.note else ()


def _describe_nothing(found: _Found) -> tuple[str, ...]:
    """Return what the model has to know where it is shown no reference."""
    nothing_fits = (prompts.NOTHING_FITS,) if found.references else ()
    return (*nothing_fits, *(" ".join(note.split()) for note in found.notes))


def _read_texts(sections: Sequence[InferenceSection], own: Sequence[str]) -> TurnTexts:
    private: list[str] = []
    public: list[str] = []
    for section in sections:
        chunk = section.best.chunk
        texts = public if PUBLIC in chunk.access.readers else private
        texts.append(f"{chunk.title}\n{section.text}")
    return TurnTexts(private, public, own)
