"""Look a message up in Chat mode: what the documents hold, what the web says, what was found out before, and what the asker asked to remember."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import TypeAlias, TypeVar

from backend.chat import prompts
from backend.chat.agent.read_texts import ReadTexts
from backend.chat.context_files import ContextFile
from backend.chat.earlier_findings import EarlierFinding
from backend.chat.events import SEARCH_ERRORS, ChatEvent, SearchPlanned
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
    find_unclear,
    needs_no_search,
    plan_variants,
)
from backend.chat.privacy.query_privacy import AllowedQuery
from backend.chat.references import fit_references
from backend.chat.turn import ChatDependencies, ChatTurn
from backend.chat.web_lookup import CheckQuery, WebLookup, WebReferences, start_web_lookup
from backend.search.events import StepFailed
from backend.search.follow_ups import FOLLOW_UP
from backend.search.futures import PendingCompletion, run_in_background
from backend.search.llm_protocol import Complete, CompletionError
from backend.search.models import DocumentNumbers, SearchRequest, SearchResult, VariantQuery
from backend.search.search_tool import (
    SearchTool,
    StartedSearch,
    follow_search,
    start_keyword_expansion,
)
from backend.store.chat.memories import Memory
from indexing.runtime.deadline import Deadline, DeadlineExceededError

WEB_SHARE = 0.3
"""Of the room for what is looked up on both sides, what references of the web may take."""
LOOKUP_SHARE = 0.5
"""Of the time left, after which a look-up is given up: the model needs the rest to answer."""
MEMORY_SECONDS = 2.0
"""For memories, and for what was found out before."""
INTENT, KNOWLEDGE, MEMORY, EARLIER = "intent", "knowledge", "memory", "earlier_findings"
"""The steps that are lost where no plan was written in time, the documents could not be searched, the memories not read, or
what was found out before."""
_T = TypeVar("_T")

_Started: TypeAlias = StartedSearch | DeadlineExceededError | None
"""A search of the message; what ended it, where it was late; None where there is none, or it failed."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was looked up for a message. References of the web are not numbered yet."""

    web: WebReferences = field(default_factory=WebReferences)
    result: SearchResult | None = None
    memories: Sequence[Memory] = ()
    earlier: Sequence[EarlierFinding] = ()
    lost: tuple[str, ...] = ()
    """What could not be searched, in sentences for the model."""


@dataclass(frozen=True, slots=True)
class _TokenBudget:
    """The token budget of each side of the search."""

    web: int
    knowledge: int

    @classmethod
    def share(cls, room: int, plan: SearchPlan) -> "_TokenBudget":
        if _find_knowledge_queries(plan) is None:
            return cls(web=room, knowledge=0)
        web = int(room * WEB_SHARE) if _asks_web(plan) else 0
        return cls(web=web, knowledge=room - web)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLookup:
    """Looks up one message.

    Attributes:
        sides: Where it is looked up, of those that can be.
        complete: Asks the model for a plan; None where the message itself is the query.
        make_request: Makes the request of a search whose results have so many tokens.
        files: Those that the model reads whole.
        searches_files: Files that came with the message are too long for that, and are searched instead.
        room: Tokens for what is found on all sides.
    """

    turn: ChatTurn
    dependencies: ChatDependencies
    sides: frozenset[Side]
    complete: Complete | None
    make_request: Callable[[int], SearchRequest]
    files: Sequence[ContextFile]
    searches_files: bool
    room: int

    def run(self) -> Generator[ChatEvent, None, Found]:
        """Search the message itself while a model writes a plan, then ask both sides what the plan says.

        Raises:
            DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the documents could not be searched, and
                nothing else is.
        """
        intent = self._start_intent()
        memories = start_finding(self.dependencies.find_memories, self.turn)
        findings = start_finding(self.dependencies.find_earlier if self.sides else None, self.turn)
        known = intent.known_plan and self._search_files(intent.known_plan)
        lookup = self._start_web(known, AllowedQuery) if known else None
        started = yield from self._start_search(known)
        done = intent.result()
        if done.failure:
            yield StepFailed(INTENT, done.failure)
        plan = known or self._search_files(done.plan)
        if unclear := find_unclear(plan):
            yield StepFailed(FOLLOW_UP, unclear)
        if self.sides:
            yield SearchPlanned(plan)
        if not known:
            lookup = self._start_web(plan, self._make_query_check(started))
        result, lost = yield from self._search_documents(plan, started)
        of_web = yield from self._follow_web(lookup, plan)
        remembered = yield from take_found(memories, MEMORY)
        earlier = yield from take_found(findings, EARLIER)
        return Found(of_web, result, remembered, earlier, lost)

    def _start_intent(self) -> PendingIntent:
        turn = self.turn
        history = turn.history if self.complete else ()
        request = IntentRequest(message=turn.message, sides=self.sides, history=history)
        today = turn.today or date.today()
        return start_intent_step(request, self.complete, today, turn.deadline)

    def _search_files(self, plan: SearchPlan) -> SearchPlan:
        """Search files that are too long to be read whole: the model that plans does not know of them."""
        match plan:
            case Searches(knowledge=NotNeeded()) if self.searches_files:
                return replace(plan, knowledge=ask_message_itself(self.turn.message))
            case _:
                return plan

    def _limit_time(self) -> Deadline:
        deadline = self.turn.deadline
        share = deadline.remaining() * LOOKUP_SHARE
        return deadline.limited_to(min(self.dependencies.search_seconds, share))

    def _start_web(self, plan: SearchPlan, check: CheckQuery) -> WebLookup | None:
        web = self.dependencies.web
        if web is None or Side.WEB not in self.sides:
            return None
        room = _TokenBudget.share(self.room, plan).web
        return start_web_lookup(web, plan, room, self._limit_time(), check)

    def _make_query_check(self, started: _Started) -> CheckQuery:
        """Return what keeps out of the questions of a model what only documents say that not everybody may read.

        It has read no document, but answers of earlier turns that rest on them. What these say is private too, as far as
        neither the asker nor a public document says it: where no search was made, nothing else tells what is.
        """
        web = self.dependencies.web
        if web is None or not web.keeps_internal_names:
            return AllowedQuery
        texts = ReadTexts(self.turn, self.files)
        texts.add_answers(self.turn)
        if isinstance(started, StartedSearch):
            texts.add_sections(started.ranking.sections)
        return texts.check_query

    def _follow_web(
        self, lookup: WebLookup | None, plan: SearchPlan
    ) -> Generator[ChatEvent, None, WebReferences]:
        """Return what the web holds, as much of it as fits."""
        if lookup is None:
            return WebReferences()
        found = yield from lookup.follow(DocumentNumbers())
        room = _TokenBudget.share(self.room, plan).web
        fitting = fit_references(found.references, room, self.dependencies.count_tokens)
        return replace(found, references=tuple(fitting))

    @property
    def _search(self) -> SearchTool | None:
        return self.dependencies.search if Side.KNOWLEDGE in self.sides else None

    def _request(self, room: int) -> SearchRequest:
        return replace(self.make_request(room), deadline=self._limit_time())

    def _start_search(self, known: SearchPlan | None) -> Generator[ChatEvent, None, _Started]:
        """Search the message itself; where that fails, it is tried again once the plan says that it is needed."""
        search = self._search
        if search is None or (known and _find_knowledge_queries(known) is None):
            return None
        request = self._request(self.room)
        calls = start_keyword_expansion(request, self.complete)
        try:
            return (yield from search.start(request, calls=calls))
        except DeadlineExceededError as error:
            return error
        except SEARCH_ERRORS:
            return None

    def _search_documents(
        self, plan: SearchPlan, started: _Started
    ) -> Generator[ChatEvent, None, tuple[SearchResult | None, tuple[str, ...]]]:
        """Return what the documents hold, and what was lost; with the web beside it, a search that fails loses only its own."""
        search, asked = self._search, _find_knowledge_queries(plan)
        if search is None or asked is None:
            return None, ()
        request = self._request(_TokenBudget.share(self.room, plan).knowledge)
        try:
            if isinstance(started, DeadlineExceededError):
                raise started
            if started is None:
                started = yield from search.start(request, calls={})
            events = search.complete(started, request, asked)
            return (yield from follow_search(events)), ()
        except SEARCH_ERRORS as error:
            if Side.WEB not in self.sides:
                raise
            yield StepFailed(KNOWLEDGE, str(error))
            return None, (prompts.KNOWLEDGE_FAILED,)


def start_finding(
    find: Callable[[str, Deadline], Sequence[_T]] | None, turn: ChatTurn
) -> PendingCompletion[Sequence[_T]] | None:
    """Begin to find what belongs to the asker and speaks to the message, beside the search; None where nothing is."""
    if find is None or needs_no_search(turn.message):
        return None
    deadline = turn.deadline.limited_to(MEMORY_SECONDS)
    return run_in_background(partial(find, turn.message, deadline), deadline)


def take_found(
    pending: PendingCompletion[Sequence[_T]] | None, step: str
) -> Generator[ChatEvent, None, Sequence[_T]]:
    if pending is None:
        return ()
    try:
        return pending.result()
    except CompletionError as error:
        yield StepFailed(step, str(error))
        return ()


def _find_knowledge_queries(plan: SearchPlan) -> list[VariantQuery] | None:
    """Return what the documents are asked besides the message itself; None where they are not asked."""
    match plan:
        case Searches(knowledge=Queries() as asked):
            return plan_variants(asked)
        case Searches() | Summary():
            return None


def _asks_web(plan: SearchPlan) -> bool:
    return bool(plan.links) or (isinstance(plan, Searches) and isinstance(plan.web, Queries))
