"""The tools of a turn: what its calls may do, what is run for them, and what the model is given."""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from backend.chat import prompts
from backend.chat.agent.call_plans import CallPlanner, PlannedCall, list_work
from backend.chat.agent.concurrent_tasks import Task, TaskFailure, run_concurrently
from backend.chat.agent.known_pages import KnownPages, RefusedPage
from backend.chat.agent.read_texts import ReadTexts
from backend.chat.agent.tool_calls import ParsedCall
from backend.chat.agent.tool_replies import (
    FRAME,
    OpenedPage,
    ToolReply,
    WebReplies,
    reply_to_search,
)
from backend.chat.agent.tool_work import (
    InternalSearch,
    Outcome,
    Outcomes,
    PageReading,
    WebSearching,
    Work,
    share_room,
)
from backend.chat.agent.web_work import WebWorker
from backend.chat.context_files import ContextFile
from backend.chat.earlier_findings import EarlierFinding
from backend.chat.events import ChatEvent, WebSearched
from backend.chat.turn import ChatDependencies, ChatTurn
from backend.chat.web_lookup import ReadPage
from backend.search.models import InferenceSection, SearchResult
from backend.web_search.results import BlockedPage, UnreadablePage
from backend.web_search.web_session import WebFinding
from indexing.runtime.deadline import Deadline

SearchDocuments: TypeAlias = Callable[
    [InternalSearch, int], Generator[ChatEvent, None, SearchResult]
]
"""Searches, and returns a result of so many tokens."""


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """The calls of a step, and what was run for them."""

    plans: Sequence[PlannedCall]
    outcomes: Outcomes
    rooms: dict[Work, int]


class TurnTools:
    """Belongs to the thread of its turn."""

    def __init__(
        self, turn: ChatTurn, dependencies: ChatDependencies, files: Iterable[ContextFile]
    ) -> None:
        """Prepare the tools of a turn; `files` are those that the model reads whole."""
        self._web = dependencies.web
        self._question = turn.message
        self._count_tokens = dependencies.count_tokens
        self._texts = ReadTexts(turn, files)
        pages = KnownPages(self._texts, dependencies.numbers)
        self._planner = CallPlanner(self._texts, pages, self._web)
        self._replies = WebReplies(pages, turn.message, dependencies.count_tokens)

    def plan(self, calls: Sequence[ParsedCall], searched: frozenset[str]) -> list[PlannedCall]:
        return self._planner.plan(calls, searched)

    def add_sections(self, sections: Iterable[InferenceSection]) -> None:
        """Note what the model is shown of documents: from now on less may be asked of the web."""
        self._texts.add_sections(sections)

    def add_findings(self, findings: Iterable[EarlierFinding]) -> None:
        """Note what the model is shown of earlier research, as `add_sections`."""
        self._texts.add_findings(findings)

    def run(
        self,
        plans: Sequence[PlannedCall],
        room: int,
        search: SearchDocuments,
        deadline: Deadline,
    ) -> Generator[ChatEvent, None, FinishedStep]:
        """Run side by side what was planned.

        Args:
            room: the tokens that the results may have together, besides what `estimate` returns.
        """
        for plan in plans:
            if plan.withheld:
                finding = WebFinding(query="", results=(), problem=prompts.NOTHING_SENT)
                yield WebSearched(finding, plan.withheld)
        rooms = share_room(list_work(plans), room)
        tasks = {work: self._make_task(work, rooms[work], search, deadline) for work in rooms}
        outcomes = yield from run_concurrently(tasks, deadline)
        return FinishedStep(plans, outcomes, rooms)

    def estimate(self, plan: PlannedCall) -> str:
        """Return a text as long as what the model is given about a call besides its results."""
        refused = [one.advice for one in plan.work if isinstance(one, RefusedPage)]
        return "\n".join((FRAME, *refused)) if plan.work else plan.reply

    def reply(self, step: FinishedStep) -> list[ToolReply]:
        """Tell what came of the calls; what several have asked for is said once."""
        replied: set[Work] = set()
        replies: list[ToolReply] = []
        for plan in step.plans:
            replies.append(self._fit(plan, step, self._reply_to_call(plan, step, replied)))
            replied |= {*list_work([plan])}
        return replies

    def _make_task(
        self, work: Work, room: int, search: SearchDocuments, deadline: Deadline
    ) -> Task[Outcome]:
        if isinstance(work, InternalSearch):
            return partial(search, work, room)
        if self._web is None:
            raise ValueError("the web is switched off")
        worker = WebWorker(self._web, self._question, self._count_tokens, deadline)
        if isinstance(work, WebSearching):
            return partial(worker.search, work)
        return partial(worker.read, work, room)

    def _reply_to_call(
        self, plan: PlannedCall, step: FinishedStep, replied: set[Work]
    ) -> ToolReply:
        match plan.work:
            case ():
                return ToolReply(plan.reply)
            case (InternalSearch() as search,):
                return _reply_to_search(step.outcomes[search], plan.note)
            case (WebSearching() as search,) if search in replied:
                return ToolReply(prompts.SHOWN_WITH_ANOTHER)
            case (WebSearching() as search,):
                return self._reply_to_web_search(search, plan.note, step)
            case pages:
                opened = [_describe_page(page, step, replied) for page in pages]
                return self._replies.format_pages_reply(opened, plan.note)

    def _reply_to_web_search(
        self, search: WebSearching, note: str, step: FinishedStep
    ) -> ToolReply:
        outcome = step.outcomes[search]
        if not isinstance(outcome, WebFinding):
            return ToolReply(prompts.TOO_SLOW)
        room = step.rooms[search] + self._count_tokens(FRAME)
        return self._replies.format_search_reply(outcome, note, room)

    def _fit(self, plan: PlannedCall, step: FinishedStep, reply: ToolReply) -> ToolReply:
        """Leave out what would not fit into the window after all, such as many reasons why pages were not read."""
        if not plan.work:
            return reply
        room = sum(step.rooms[work] for work in list_work([plan]))
        most = room + self._count_tokens(self.estimate(plan))
        fits = self._count_tokens(reply.text) <= most
        return reply if fits else ToolReply(prompts.NOTHING_FITS)


def _reply_to_search(outcome: Outcome | TaskFailure, note: str) -> ToolReply:
    if not isinstance(outcome, SearchResult):
        return ToolReply(prompts.SEARCH_FAILED)
    return reply_to_search(outcome, note)


def _describe_page(
    page: Work | RefusedPage, step: FinishedStep, replied: set[Work]
) -> OpenedPage | RefusedPage:
    match page:
        case RefusedPage():
            return page
        case PageReading(url) if page in replied:
            return OpenedPage(url, prompts.SHOWN_WITH_ANOTHER)
        case PageReading(url):
            match step.outcomes[page]:
                case (ReadPage() | BlockedPage() | UnreadablePage()) as outcome:
                    return OpenedPage(url, outcome, step.rooms[page])
                case _:
                    return OpenedPage(url, prompts.TOO_SLOW)
        case InternalSearch() | WebSearching():
            raise ValueError("a call opens pages, or it searches")
