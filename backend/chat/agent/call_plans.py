"""Decide for each call of a step what is run for it, and what is not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from backend.chat import prompts
from backend.chat.agent.known_pages import KnownPages, OpenablePage, RefusedPage
from backend.chat.agent.read_texts import ReadTexts
from backend.chat.agent.tool_calls import (
    MAX_PAGES,
    InvalidCall,
    OpenCall,
    ParsedCall,
    SearchCall,
    WebSearchCall,
    merge_queries,
    note_left_out,
)
from backend.chat.agent.tool_work import InternalSearch, PageReading, WebSearching, Work
from backend.chat.intent.search_plan import needs_no_search
from backend.chat.intent.unneeded_search import says_not_needed
from backend.chat.privacy.query_privacy import AllowedQuery, CheckedQuery, RefusedQuery
from backend.search.retrieval import MAX_MODEL_QUERIES
from backend.web_search.result_text import NO_SEARCH_NEEDED
from backend.web_search.web_session import WebSession
from indexing.text.tokenizer import plain_words

FEWEST_LETTERS = 2
"""Of a query; who asks for single letters, one after another, spells."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call with what is run for it.

    Attributes:
        work: Where the same stands with several calls, it is run once.
        reply: What the model is answered where nothing is run.
        note: What it is given besides the results.
        withheld: What would have left with a query that is not sent, because nothing else is in it.
    """

    call: ParsedCall
    work: tuple[Work | RefusedPage, ...] = ()
    reply: str = ""
    note: str = ""
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _JoinedSearch:
    """What the queries of all calls of a step come to."""

    first: SearchCall | None
    """The call that is given the results."""
    search: InternalSearch
    known: frozenset[str]
    """All queries that were searched, with these."""

    @classmethod
    def of(cls, calls: Iterable[ParsedCall], searched: frozenset[str]) -> "_JoinedSearch":
        asking = [one for one in calls if isinstance(one, SearchCall) and not _needs_none(one)]
        fresh = [query for query in merge_queries(asking) if query not in searched]
        queries = tuple(fresh[:MAX_MODEL_QUERIES])
        first = asking[0] if queries else None
        return cls(first, InternalSearch(queries), searched | {*queries})

    def plan(self, call: SearchCall) -> PlannedCall:
        if _needs_none(call):
            return PlannedCall(call, reply=NO_SEARCH_NEEDED)
        note = note_left_out(call, self.known)
        if call is self.first:
            return PlannedCall(call, (self.search,), note=note)
        reply = prompts.WITH_THE_FIRST if self.first else prompts.SEARCHED_ALREADY
        return PlannedCall(call, reply=" ".join(filter(None, (reply, note))))


@dataclass(frozen=True, slots=True)
class CallPlanner:
    """Plans the calls of a turn by what it has read so far."""

    texts: ReadTexts
    pages: KnownPages
    session: WebSession | None

    def plan(self, calls: Sequence[ParsedCall], searched: frozenset[str]) -> list[PlannedCall]:
        """Plan the calls of a step.

        Args:
            searched: queries of documents that were searched before.
        """
        joined = _JoinedSearch.of(calls, searched)
        return _limit_pages([self._plan_call(call, joined) for call in calls])

    def _plan_call(self, call: ParsedCall, joined: _JoinedSearch) -> PlannedCall:
        match call:
            case InvalidCall(message=message):
                return PlannedCall(call, reply=message)
            case SearchCall():
                return joined.plan(call)
            case WebSearchCall(query=query):
                return self._plan_web_search(call, query)
            case OpenCall(pages=pages, written=written):
                note = prompts.first_pages_opened(len(pages)) if len(pages) < written else ""
                return PlannedCall(call, tuple(map(self._plan_page, pages)), note=note)

    def _plan_web_search(self, call: WebSearchCall, query: str) -> PlannedCall:
        if _is_nothing(query):
            return PlannedCall(call, reply=NO_SEARCH_NEEDED)
        match self._check_query(query):
            case AllowedQuery(text, removed):
                search = WebSearching(text, removed, call.freshness)
                return PlannedCall(call, (search,), note=_note(call, removed))
            case RefusedQuery(removed):
                return PlannedCall(call, reply=prompts.NOTHING_LEFT_OF_QUERY, withheld=removed)

    def _check_query(self, query: str) -> CheckedQuery:
        """Keep internal names out, unless an admin has decided otherwise."""
        keeps = self.session is None or self.session.keeps_internal_names
        return self.texts.check_query(query) if keeps else AllowedQuery(query)

    def _plan_page(self, reference: str) -> PageReading | RefusedPage:
        match self.pages.check(reference):
            case OpenablePage(url):
                return PageReading(url)
            case RefusedPage() as refused:
                return refused


def list_work(plans: Iterable[PlannedCall]) -> list[Work]:
    """Return what is run for calls, each once."""
    work = (one for plan in plans for one in plan.work if not isinstance(one, RefusedPage))
    return list(dict.fromkeys(work))


def _needs_none(call: SearchCall) -> bool:
    return all(map(_asks_nothing, call.queries))


def _is_nothing(query: str) -> bool:
    """Return whether there is nothing to search the web for."""
    letters = sum(map(len, plain_words(query)))
    return letters < FEWEST_LETTERS or _asks_nothing(query)


def _asks_nothing(query: str) -> bool:
    """Return whether a query is only a greeting, or the word that no search is needed."""
    return needs_no_search(query) or says_not_needed(query)


def _limit_pages(plans: Sequence[PlannedCall]) -> list[PlannedCall]:
    """Read the first pages of a step alone."""
    pages = [one for one in list_work(plans) if isinstance(one, PageReading)]
    late: dict[Work | RefusedPage, RefusedPage] = {
        one: RefusedPage(one.url, prompts.NOT_IN_THIS_STEP) for one in pages[MAX_PAGES:]
    }
    return [replace(one, work=tuple(late.get(each) or each for each in one.work)) for one in plans]


def _note(call: WebSearchCall, removed: Sequence[str]) -> str:
    left_out = prompts.first_query_searched(call.written) if call.written > 1 else ""
    withheld = prompts.withheld_from_query(removed) if removed else ""
    return "\n".join(filter(None, (left_out, withheld)))
