"""Search documents and the web, and read pages, for one agent; what is found is kept as evidence."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from backend.chat import prompts as chat_prompts
from backend.chat.agent.call_plans import CallPlanner, PlannedCall, list_work
from backend.chat.agent.concurrent_tasks import Task, TaskFailure, run_concurrently
from backend.chat.agent.known_pages import KnownPages, RefusedPage
from backend.chat.agent.read_texts import ReadTexts
from backend.chat.agent.tool_calls import OpenCall, WebSearchCall
from backend.chat.agent.tool_work import InternalSearch, PageReading, WebSearching, Work
from backend.chat.agent.web_work import WebWorker
from backend.chat.citations.citation_processor import SourceKind
from backend.chat.earlier_findings import EarlierFinding
from backend.chat.events import ChatEvent, PagesRead
from backend.chat.llm.messages import ToolCall
from backend.chat.readable_ids import make_research_reference
from backend.chat.turn_settings import AssistantSettings
from backend.research.agent.actions import Place, Search
from backend.research.agent.evidence import Evidence, list_document_sources
from backend.research.cluster_insights import learn_from_clusters
from backend.research.dependencies import ResearchDependencies
from backend.research.earlier_findings import find_earlier_findings, make_finding_source
from backend.research.knowledge.builders import (
    learn_from_pages,
    learn_from_results,
    learn_from_sections,
)
from backend.research.record.research_record import ResearchRecord
from backend.research.record.sources import NumberedSource, SourceText
from backend.research.result_clusters import cluster_results
from backend.search.llm_protocol import Complete
from backend.search.models import Budgets, DocumentNumbers, SearchResult, make_request
from backend.search.search_tool import SearchTool, follow_search
from backend.web_search.page_descriptions import describe_failure
from backend.web_search.page_fetcher import get_host
from backend.web_search.page_snippets import SnippetBudget
from backend.web_search.results import BlockedPage, Freshness, PageOutcome, UnreadablePage, WebPage
from backend.web_search.tool_texts import OPEN_URL, WEB_SEARCH
from backend.web_search.web_session import WebFinding
from connectors.access import Readers
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline, DeadlineExceededError

PAGE_BUDGET = SnippetBudget(characters=6_000, snippets=4)
CLUSTER_SECONDS = 20.0
DOCUMENT_TOKENS = 6_000
"""Of what one search of documents returns."""

_Outcome: TypeAlias = SearchResult | WebFinding | WebPage | BlockedPage | UnreadablePage
_Outcomes: TypeAlias = Mapping[Work, _Outcome | TaskFailure]


@dataclass(frozen=True, slots=True)
class ActionResult:
    new: int
    notes: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    receivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PageToRead:
    """A page of the web that a search has returned, or a link of one that was read."""

    label: str
    """By which it is opened."""
    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """For whom an agent searches, and in what."""

    dependencies: ResearchDependencies
    readers: Readers
    assistant: AssistantSettings
    filters: Filters
    places: frozenset[Place]
    search_tool: SearchTool | None
    """Of this agent alone; None where no documents are searched."""
    numbers: DocumentNumbers
    """Shared with the search tool."""
    judge: Complete
    """Asks the fast model."""
    asked: str
    """The person's question, by which links of pages are chosen."""


class AgentTools:
    """Belongs to the thread of its agent, and notes what it finds in `evidence`."""

    def __init__(self, request: ToolRequest, texts: ReadTexts, evidence: Evidence) -> None:
        self.request = request
        self.texts = texts
        self.evidence = evidence
        self.to_read: dict[str, PageToRead] = {}
        """Pages of the web that were not read, by their ids."""
        self.opened: set[str] = set()
        """The ids of those that were, or could not be."""
        self.unknown_hosts: set[str] = set()
        """Names that lead to no address: no other page of theirs is asked for."""
        self.tried: dict[str, set[Place]] = {}
        """Where each query was searched; queries are compared without case."""
        self.earlier: dict[int, EarlierFinding] = {}
        """What research found out before, by its numbers."""
        self._pages = KnownPages(texts, request.numbers)

    def recall(self, question: str, record: ResearchRecord, deadline: Deadline) -> None:
        """Find what research found out before that speaks to a question; each finding is a source.

        Raises:
            CompletionError: it could not be looked up.
        """
        request = self.request
        found = find_earlier_findings(
            question, record, request.readers, request.assistant, request.dependencies, deadline
        )
        self.texts.add_findings(found)
        for one in found:
            number = request.numbers.assign(make_research_reference(one.id))
            self.evidence.add(make_finding_source(one, number))
            self.earlier[number] = one

    def search(self, search: Search, deadline: Deadline) -> ActionResult:
        """Search for the queries that were not tried before."""
        fresh = {one: self._take(search.queries, one) for one in search.places}
        asked = {query for queries in fresh.values() for query in queries}
        repeated = [f"Searched before: {one}" for one in search.queries if one not in asked]
        plans = self._plan_web(fresh.get(Place.WEB, ()), search.freshness)
        work = list_work(plans)
        if documents := fresh.get(Place.DOCUMENTS):
            work.append(InternalSearch(documents))
        outcomes = self._run(work, deadline.limited_to(self._search_seconds))
        new = sum(self._note_search(one, outcomes[one]) for one in work)
        self._learn_from_clusters(search.queries[0], outcomes, deadline)
        notes = (*repeated, *_describe_refused(plans), *_describe_lost(outcomes))
        findings = [one for one in outcomes.values() if isinstance(one, WebFinding)]
        receivers = dict.fromkeys(name for one in findings for name in one.receivers)
        return ActionResult(new, notes, tuple(one.query for one in findings), tuple(receivers))

    def visit(
        self, references: Sequence[str], question: str, most: int, deadline: Deadline
    ) -> ActionResult:
        """Read at most `most` pages that were not read before."""
        call = OpenCall(ToolCall("", OPEN_URL, ""), tuple(references), len(references))
        plans = self._planner.plan([call], frozenset())
        work = [one for one in list_work(plans) if self._may_help(_get_url(one))]
        outcomes = self._run(work[:most], deadline.limited_to(self._search_seconds))
        new = sum(
            self._note_page(_get_url(work), outcome, question, deadline)
            for work, outcome in outcomes.items()
        )
        return ActionResult(new, (*_describe_refused(plans), *_describe_lost(outcomes)))

    def _take(self, queries: Iterable[str], place: Place) -> tuple[str, ...]:
        """Return the queries that were not searched in this place, and note that they are now."""
        fresh = []
        for query in queries:
            searched = self.tried.setdefault(" ".join(query.casefold().split()), set())
            if place not in searched:
                searched.add(place)
                fresh.append(query)
        return tuple(fresh)

    @property
    def _search_seconds(self) -> float:
        return self.request.dependencies.search_seconds

    @property
    def _planner(self) -> CallPlanner:
        return CallPlanner(self.texts, self._pages, self.request.dependencies.web)

    def _plan_web(self, queries: Iterable[str], freshness: Freshness | None) -> list[PlannedCall]:
        call = ToolCall("", WEB_SEARCH, "")
        calls = [WebSearchCall(call, query, 1, freshness) for query in queries]
        return self._planner.plan(calls, frozenset())

    def _run(self, work: Iterable[Work], deadline: Deadline) -> _Outcomes:
        tasks = {one: self._make_task(one, deadline) for one in work}
        running = run_concurrently(tasks, deadline)
        while True:
            try:
                next(running)
            except StopIteration as end:
                outcomes: _Outcomes = end.value
                return outcomes

    def _make_task(self, work: Work, deadline: Deadline) -> Task[_Outcome]:
        web = self.request.dependencies.web
        match work:
            case InternalSearch(queries):
                return partial(self._search_documents, queries, deadline)
            case WebSearching() if web is not None:
                worker = WebWorker(web, "", self.request.dependencies.count_tokens, deadline)
                return partial(worker.search, work)
            case PageReading(url):
                return partial(self._read_page, url, deadline)
            case _:
                raise ValueError("the web is switched off")

    def _search_documents(
        self, queries: Sequence[str], deadline: Deadline
    ) -> Generator[ChatEvent, None, SearchResult]:
        if self.request.search_tool is None:
            raise ValueError("documents are not searched")
        models = self.request.dependencies
        budgets = Budgets.for_window(models.writer.settings.context_window)
        selection = Budgets.for_window(models.fast.settings.context_window).selection
        request = make_request(
            queries[0],
            self.request.readers,
            deadline,
            Budgets(selection, min(budgets.answer, DOCUMENT_TOKENS)),
            model_queries=tuple(queries[1:]),
            history=(),
            filters=self.request.filters,
            read=models.infer,
        )
        # Queries of an agent stand by themselves: no model has to put them in other words.
        started = yield from self.request.search_tool.start(request, calls={})
        return (yield from follow_search(self.request.search_tool.complete(started, request)))

    def _read_page(self, url: str, deadline: Deadline) -> Generator[ChatEvent, None, PageOutcome]:
        web = self.request.dependencies.web
        if web is None:
            raise ValueError("the web is switched off")
        [outcome] = web.read([url], deadline)
        yield PagesRead((outcome,))
        return outcome

    def _note_search(self, work: Work, outcome: _Outcome | TaskFailure) -> int:
        """Keep what a search has found, and return how many sources are new, or have new texts."""
        match work, outcome:
            case InternalSearch(queries), SearchResult() as result:
                self.texts.add_sections(result.sections)
                sources = list(list_document_sources(result))
                self.evidence.learn(learn_from_sections(queries[0], result.sections))
                return sum(map(self.evidence.add, sources))
            case WebSearching(freshness=freshness), WebFinding() as finding:
                return self._note_results(finding, freshness)
            case _:
                return 0

    def _learn_from_clusters(self, query: str, outcomes: _Outcomes, deadline: Deadline) -> None:
        """Keep what results that say alike things say together; all queries of a search count as one."""
        findings = [one for one in outcomes.values() if isinstance(one, WebFinding)]
        results = [result for one in findings for result in one.results]
        limit = deadline.limited_to(CLUSTER_SECONDS)
        if len(results) < 2 or not limit.remaining():
            return
        try:
            clusters = cluster_results(results, self.request.dependencies.embedding, limit)
        except DeadlineExceededError:
            return
        items = learn_from_clusters(query, clusters, self.request.judge, limit)
        self.evidence.learn(items)

    def _note_results(self, finding: WebFinding, freshness: Freshness | None) -> int:
        item = learn_from_results(finding.query, finding.results, freshness)
        self.evidence.learn([item] if item else [])
        new = 0
        for result in finding.results:
            number = self._pages.add_result(result.url)
            page_id = self._pages.identify(result.url)
            new += self.evidence.add(
                NumberedSource(
                    number=number,
                    kind=SourceKind.WEB,
                    document_id=page_id,
                    title=result.title or result.url,
                    url=result.url,
                    date=result.published,
                    texts=(SourceText(result.summary),) if result.summary.strip() else (),
                )
            )
            self._offer(PageToRead(str(number), result.title, result.url))
        return new

    def _may_help(self, url: str) -> bool:
        """Return whether a page was not asked for before, and its host may exist."""
        is_new = self._pages.identify(url) not in self.opened
        return is_new and get_host(url) not in self.unknown_hosts

    def _offer(self, page: PageToRead) -> None:
        if self._may_help(page.url):
            self.to_read.setdefault(self._pages.identify(page.url), page)

    def _withdraw_host(self, host: str) -> None:
        self.unknown_hosts.add(host)
        self.to_read = {
            page_id: page for page_id, page in self.to_read.items() if get_host(page.url) != host
        }

    def _note_page(
        self, asked: str, outcome: _Outcome | TaskFailure, question: str, deadline: Deadline
    ) -> int:
        page_id = self._pages.identify(asked)
        self.opened.add(page_id)
        self.to_read.pop(page_id, None)
        if isinstance(outcome, UnreadablePage) and outcome.unknown_host:
            self._withdraw_host(outcome.unknown_host)
        if not isinstance(outcome, WebPage):
            return 0
        number = self._pages.add_page(asked, outcome)
        items = learn_from_pages(
            question, [outcome], self.request.dependencies.embedding, PAGE_BUDGET, deadline
        )
        self.evidence.learn(items)
        texts = [
            SourceText(one.exact_quote, 0, one.span.start)
            for item in items
            for one in item.references
        ]
        self._list_links(asked, outcome)
        return self.evidence.add(
            NumberedSource(
                number=number,
                kind=SourceKind.WEB,
                document_id=self._pages.identify(asked),
                title=outcome.title or outcome.url,
                url=asked,
                date=outcome.published.at if outcome.published else None,
                texts=tuple(texts),
            )
        )

    def _list_links(self, asked: str, page: WebPage) -> None:
        for listed in self._pages.list_links(asked, page, self.request.asked):
            self._offer(PageToRead(listed.label, listed.link.text, listed.link.url))


def _get_url(work: Work) -> str:
    if not isinstance(work, PageReading):
        raise ValueError("a visit reads pages")
    return work.url


def _describe_refused(plans: Iterable[PlannedCall]) -> list[str]:
    """Return why something was not sent or not opened."""
    notes: dict[str, None] = {}
    for plan in plans:
        notes |= dict.fromkeys(filter(None, (plan.reply, plan.note)))
        if plan.withheld:
            notes[chat_prompts.withheld_from_query(plan.withheld)] = None
        refused = (one for one in plan.work if isinstance(one, RefusedPage))
        notes |= dict.fromkeys(f"{one.reference}: {one.advice}" for one in refused)
    return list(notes)


def _describe_lost(outcomes: _Outcomes) -> list[str]:
    """Return what failed, each in a sentence."""
    return list(dict.fromkeys(filter(None, map(_describe_outcome, outcomes.values()))))


def _describe_outcome(outcome: _Outcome | TaskFailure) -> str:
    match outcome:
        case TaskFailure(error):
            return f"This failed: {error}"
        case WebFinding(problem=problem):
            return problem
        case BlockedPage() | UnreadablePage():
            return describe_failure(outcome)
        case SearchResult(partial=True, note=note):
            return note
        case _:
            return ""
