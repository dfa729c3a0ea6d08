"""Chat mode: what the message needs is looked up first, and goes to the model with it as references."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from backend.chat import prompts
from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import SEARCH_ERRORS, ChatEvent, SearchPlanned
from backend.chat.intent.intent_step import start_intent_step
from backend.chat.intent.search_plan import (
    IntentRequest,
    Queries,
    Searches,
    SearchPlan,
    Side,
    Summary,
    knowledge_variants,
)
from backend.chat.model_turn import EMPTY, FILES_TOO_LONG, ModelTurn, TurnFailedError
from backend.chat.references import (
    Reference,
    fit_references,
    format_references,
    format_web_list,
    make_document_references,
    make_file_references,
    map_references,
)
from backend.chat.turn import ChatDependencies, ChatTurn
from backend.chat.turn_mode import ChatMode
from backend.chat.web_lookup import WebReferences, start_web_lookup
from backend.search.events import StepFailed
from backend.search.models import Budgets, SearchResult, VariantQuery
from backend.search.search_tool import (
    SearchTool,
    StartedSearch,
    follow_search,
    start_keyword_expansion,
)

WEB_SHARE = 0.3
"""Of what the window has left, what references of the web may take."""
INTENT = "intent"
KNOWLEDGE = "knowledge"
"""The steps that are lost where no plan was written in time, or the documents could not be searched."""


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
    """What was looked up for a message, in the order of its numbers."""

    files: Sequence[Reference] = ()
    web: WebReferences = field(default_factory=WebReferences)
    documents: Sequence[Reference] = ()
    notes: tuple[str, ...] = ()

    @property
    def references(self) -> tuple[Reference, ...]:
        return (*self.files, *self.web.references, *self.documents)


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
        if not self._cites:
            return ()
        alone = self._stays_with_references
        rest = prompts.FROM_REFERENCES_ALONE if alone else prompts.WITH_GENERAL_KNOWLEDGE
        return (prompts.FROM_REFERENCES, rest)

    def _answer(self) -> Generator[ChatEvent, None, None]:
        if self._files.use_as_search_filter and Side.KNOWLEDGE not in self._sides:
            raise TurnFailedError(FILES_TOO_LONG)
        found = yield from self._look_up()
        self._put(found)
        result = yield from self._step()
        if result is None or not result.text.strip():
            raise TurnFailedError(EMPTY)
        yield self._finish(result)

    def _look_up(self) -> Generator[ChatEvent, None, _Found]:
        request = IntentRequest(
            message=self._turn.message, sides=self._sides, history=self._turn.history
        )
        complete = self._dependencies.complete if self._mode.rewrites else None
        today = self._turn.today or date.today()
        pending = start_intent_step(request, complete, today, self._turn.deadline)
        budgets = self._conversation.budgets(())
        room = int(budgets.answer * WEB_SHARE) if Side.WEB in self._sides else 0
        budgets = replace(budgets, answer=budgets.answer - room)
        started = yield from self._start_search(budgets)
        intent = pending.result()
        if intent.failure:
            yield StepFailed(INTENT, intent.failure)
        if self._sides:
            yield SearchPlanned(intent.plan)
        return (yield from self._follow_plan(intent.plan, started, budgets, room))

    def _start_search(self, budgets: Budgets) -> Generator[ChatEvent, None, StartedSearch | None]:
        """Search the message itself; where that fails, it is tried again once the plan says that it is needed."""
        search = self._search
        if search is None:
            return None
        request = self._search_request((), budgets)
        complete = self._dependencies.complete if self._mode.rewrites else None
        calls = start_keyword_expansion(request, complete)
        try:
            return (yield from search.start(request, calls=calls))
        except SEARCH_ERRORS:
            return None

    @property
    def _search(self) -> SearchTool | None:
        return self._dependencies.search if Side.KNOWLEDGE in self._sides else None

    def _follow_plan(
        self, plan: SearchPlan, started: StartedSearch | None, budgets: Budgets, room: int
    ) -> Generator[ChatEvent, None, _Found]:
        numbers, web = self._dependencies.numbers, self._dependencies.web
        deadline = self._turn.deadline.limited_to(self._dependencies.search_seconds)
        lookup = (
            start_web_lookup(web, plan, room, deadline) if web and Side.WEB in self._sides else None
        )
        result, failure = yield from self._search_documents(plan, started, budgets)
        of_web = (yield from lookup.follow(numbers)) if lookup else WebReferences()
        fitting = fit_references(of_web.references, room, self._dependencies.count_tokens)
        of_web = replace(of_web, references=tuple(fitting))
        documents: Sequence[Reference] = ()
        if result is not None:
            result = result.renumber(numbers)
            self._cite_result(result)
            documents = make_document_references(result)
        notes = (result.note,) if result is not None and result.note else ()
        files = make_file_references(self._loaded, self._files.files) if self._loaded else ()
        return _Found(files, of_web, documents, (*notes, *failure, *of_web.notes))

    def _search_documents(
        self, plan: SearchPlan, started: StartedSearch | None, budgets: Budgets
    ) -> Generator[ChatEvent, None, tuple[SearchResult | None, tuple[str, ...]]]:
        """Return what the documents hold, and what was lost; with the web beside it, a search that fails loses only its own."""
        search, asked = self._search, _get_knowledge(plan)
        if search is None or asked is None:
            return None, ()
        request = self._search_request((), budgets)
        try:
            if started is None:
                started = yield from search.start(request, calls={})
            events = search.complete(started, request, asked)
            return (yield from follow_search(events)), ()
        except SEARCH_ERRORS as error:
            if Side.WEB not in self._sides:
                raise
            yield StepFailed(KNOWLEDGE, str(error))
            return None, (prompts.KNOWLEDGE_FAILED,)

    def _put(self, found: _Found) -> None:
        """Put the references into the message; without any it goes as it is."""
        references = found.references
        self._searched = True
        self._cite(map_references(found.web.references))
        for reference in found.web.references:
            self._state.add_text(reference.number, reference.content)
        if not references:
            self._conversation.add_notes(found.notes)
            return
        gaps = prompts.GAPS_STAY if self._stays_with_references else prompts.GAPS_FILLED
        message = self._turn.message
        text = self._format(found)
        self._conversation.put_references(
            prompts.references_prompt(message, text, found.notes, gaps)
        )

    def _format(self, found: _Found) -> str:
        """Format the references as one array; results of a message that is searched as it stands are a list."""
        web = found.web.references
        if self._mode.rewrites or not web:
            return format_references(found.references)
        rest = (*found.files, *found.documents)
        listed = format_web_list(web)
        return f"{listed}\n\n{format_references(rest)}" if rest else listed


def _get_knowledge(plan: SearchPlan) -> list[VariantQuery] | None:
    """Return what the documents are asked besides the message itself; None where they are not asked."""
    match plan:
        case Searches(knowledge=Queries() as asked):
            return [one for one in knowledge_variants(asked) if one.name != "original"]
        case Searches() | Summary():
            return None
