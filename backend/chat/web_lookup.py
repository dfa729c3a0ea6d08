"""Look a message up on the web: searches and pages side by side, as references."""

import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from backend.chat.citations.citation_processor import CitedDocument, SourceKind
from backend.chat.events import ChatEvent, PagesRead, WebSearched
from backend.chat.intent.search_plan import Queries, Searches, SearchPlan, Summary, web_queries
from backend.chat.privacy.query_privacy import AllowedQuery, CheckedQuery, RefusedQuery
from backend.chat.references import GAP, Reference
from backend.chat.turn_settings import AssistantSettings
from backend.search.events import StepFailed
from backend.search.futures import PendingCompletion, run_in_background
from backend.search.llm_protocol import CompletionError
from backend.search.models import DocumentNumbers
from backend.web_search.addresses import normalize_address
from backend.web_search.page_descriptions import describe_date, describe_failure
from backend.web_search.page_fetcher import describe_delay
from backend.web_search.page_snippets import SnippetBudget
from backend.web_search.results import BlockedPage, UnreadablePage, WebPage, WebResult
from backend.web_search.search import SWITCHED_OFF
from backend.web_search.web_session import TOO_LATE, WebFinding, WebSession
from indexing.embedding.token_counting import estimated_tokens
from indexing.runtime.deadline import Deadline

MAX_RESULTS = 10
"""Of all queries of a message together."""
RESULTS_PER_QUERY = 8
MAX_PAGES = 8
PAGES_SHARE = 0.7
"""Of the room, what pages may take where results of searches stand beside them."""
MAX_PAGE_CHARACTERS = 6_000
MIN_PAGE_CHARACTERS = 200
TOKEN_CHARACTERS = 2
"""Of a page for each token that its reference may have, at most."""
FRAME_TOKENS = 80
"""Of a reference besides its content: title, address, names of fields."""
TOKENS_SHARE = 0.9
"""Of the tokens of a page, what its text may take; the rest is for the marks that JSON adds."""
SAMPLE_CHARACTERS = 20_000
"""Of a page, by which its tokens are estimated."""
SNIPPETS = 4
NOT_SENT = (
    "This question was not sent to the web: only internal documents say what it would have asked."
)

WEB_SWITCHED_OFF = StepFailed("web", SWITCHED_OFF)
"""The step that is lost where the asker chose the web, and an admin has switched it off since."""
WEB_NOT_SEARCHED = StepFailed("web", "This assistant does not search the web.")


def explain_missing_web(assistant: AssistantSettings) -> StepFailed:
    """Return the step that is lost where the asker chose the web, and the turn has none."""
    return WEB_SWITCHED_OFF if assistant.may_use_web else WEB_NOT_SEARCHED


CheckQuery: TypeAlias = Callable[[str], CheckedQuery]
"""Takes out of a query what may not be sent."""


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page, and the parts of it that are nearest to the question."""

    page: WebPage
    snippets: tuple[str, ...]
    asked: str = ""
    """The address by which it was asked for, where that may be another."""


_Read: TypeAlias = ReadPage | BlockedPage | UnreadablePage


@dataclass(frozen=True, slots=True)
class RunningSearch:
    query: AllowedQuery
    finding: PendingCompletion[WebFinding]

    def result(self) -> WebFinding:
        try:
            return self.finding.result()
        except CompletionError:
            return WebFinding(query=self.query.text, results=(), problem=TOO_LATE)


@dataclass(frozen=True, slots=True)
class RunningRead:
    url: str
    page: PendingCompletion[_Read]

    def result(self) -> _Read:
        try:
            return self.page.result()
        except CompletionError:
            return UnreadablePage(self.url, describe_delay(self.url))


@dataclass(frozen=True, slots=True)
class WebLookup:
    """A look-up of the web that runs."""

    searches: Sequence[RunningSearch]
    refused: Sequence[RefusedQuery]
    reads: Sequence[RunningRead]
    """Each waits for its own page alone: a slow one holds up no other."""

    def follow(self, numbers: DocumentNumbers) -> Generator[ChatEvent, None, "WebReferences"]:
        """Wait for all of it, and return what was found under the next free numbers; pages that were asked for come first."""
        for query in self.refused:
            not_sent = WebFinding(query="", results=(), problem=NOT_SENT)
            yield WebSearched(not_sent, query.removed)
        findings: list[WebFinding] = []
        for search in self.searches:
            findings.append(search.result())
            yield WebSearched(findings[-1], search.query.removed)
        read = [one.result() for one in self.reads]
        if read:
            yield PagesRead(tuple(one.page if isinstance(one, ReadPage) else one for one in read))
        return _make_references(findings, read, numbers)


@dataclass(frozen=True, slots=True)
class WebReferences:
    references: tuple[Reference, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be searched or read, in sentences."""


def start_web_lookup(
    session: WebSession,
    plan: SearchPlan,
    room: int,
    deadline: Deadline,
    check: CheckQuery = AllowedQuery,
) -> WebLookup:
    """Begin to search and read what a plan asks of the web.

    Args:
        room: tokens that the references may have together.
        check: is asked for each query that the asker has not written.
    """
    match plan:
        case Summary(question=question, links=links):
            queries: list[CheckedQuery] = []
        case Searches(web=Queries() as web, links=links):
            question, queries = web.message, _check_queries(web, check)
        case Searches(knowledge=Queries(message=question), links=links):
            queries = []
        case Searches(links=links):
            question, queries = "", []
    searches = [
        _start_search(session, query, deadline)
        for query in queries
        if isinstance(query, AllowedQuery)
    ]
    refused = [query for query in queries if isinstance(query, RefusedQuery)]
    urls = list(dict.fromkeys(link.url for link in links))[:MAX_PAGES]
    tokens = int(room * (PAGES_SHARE if searches else 1)) // max(1, len(urls))
    reads = [_start_read(session, url, question, tokens, deadline) for url in urls]
    return WebLookup(searches, refused, reads)


def identify_page(url: str) -> str:
    """Return the id of a page of the web as a source: the address that all its spellings share."""
    return normalize_address(url) or url


def _check_queries(web: Queries, check: CheckQuery) -> list[CheckedQuery]:
    """Return what search engines are asked, each text once; the message is the asker's own."""
    allowed: dict[str, CheckedQuery] = {}
    refused: list[CheckedQuery] = []
    for text in web_queries(web):
        match AllowedQuery(text) if text == web.web_message else check(text):
            case AllowedQuery(left) as one:
                allowed.setdefault(left.casefold(), one)
            case RefusedQuery() as one:
                refused.append(one)
    return [*allowed.values(), *refused]


def _start_search(session: WebSession, query: AllowedQuery, deadline: Deadline) -> RunningSearch:
    find = partial(session.find, query.text, RESULTS_PER_QUERY, deadline)
    return RunningSearch(query, run_in_background(find, deadline))


def _start_read(
    session: WebSession, url: str, question: str, tokens: int, deadline: Deadline
) -> RunningRead:
    read = partial(_read, session, url, question, tokens, deadline)
    return RunningRead(url, run_in_background(read, deadline))


def _read(session: WebSession, url: str, question: str, tokens: int, deadline: Deadline) -> _Read:
    """Read a page; `tokens` is what it may come to."""
    [outcome] = session.read([url], deadline)
    if not isinstance(outcome, WebPage):
        return outcome
    budget = _limit_snippets(outcome, tokens)
    return ReadPage(outcome, session.choose_snippets(outcome, question, budget, deadline), url)


def _limit_snippets(page: WebPage, tokens: int) -> SnippetBudget:
    """Return how much of a page comes to so many tokens: in some scripts a character is more than one."""
    sample = page.text[:SAMPLE_CHARACTERS]
    rate = min(TOKEN_CHARACTERS, len(sample) / max(1, estimated_tokens(sample)))
    fitting = int(max(0, tokens - FRAME_TOKENS) * TOKENS_SHARE * rate)
    characters = min(MAX_PAGE_CHARACTERS, max(MIN_PAGE_CHARACTERS, fitting))
    return SnippetBudget(characters=characters, snippets=SNIPPETS)


def _make_references(
    findings: Sequence[WebFinding], outcomes: Sequence[_Read], numbers: DocumentNumbers
) -> WebReferences:
    read = [one for one in outcomes if isinstance(one, ReadPage)]
    pages = {identify_page(one.page.url): one for one in reversed(read)}
    known = {*pages, *(identify_page(one.asked) for one in read)}
    results = [one for one in _merge(findings) if identify_page(one.url) not in known]
    references = (
        *(_refer_to_page(one, numbers) for one in reversed(pages.values())),
        *(_refer_to_result(one, numbers) for one in results[:MAX_RESULTS]),
    )
    problems = dict.fromkeys(one.problem for one in findings if one.problem)
    unread = [describe_failure(one) for one in outcomes if not isinstance(one, ReadPage)]
    return WebReferences(references, (*problems, *unread))


def _merge(findings: Iterable[WebFinding]) -> list[WebResult]:
    """Take the best result of each search, then the second of each, and so on; each page once."""
    by_turns = itertools.chain.from_iterable(
        itertools.zip_longest(*(one.results for one in findings))
    )
    distinct: dict[str, WebResult] = {}
    for result in by_turns:
        if result is not None:
            distinct.setdefault(identify_page(result.url), result)
    return list(distinct.values())


def cite_page(page_id: str, title: str, url: str) -> CitedDocument:
    return CitedDocument(page_id, title or url, url, SourceKind.WEB)


def join_snippets(snippets: Iterable[str]) -> str:
    return GAP.join(snippets)


def add_date(result: WebResult, text: str) -> str:
    """Put the day of a result before what is said of it, where the search engine gives one."""
    return f"({result.published:%Y-%m-%d}) {text}" if result.published else text


def _refer_to_result(result: WebResult, numbers: DocumentNumbers) -> Reference:
    """Return a result of a search under the number of its page."""
    document = cite_page(identify_page(result.url), result.title, result.url)
    return Reference(
        numbers.assign(document.document_id), document, add_date(result, result.summary)
    )


def _refer_to_page(read: ReadPage, numbers: DocumentNumbers) -> Reference:
    page = read.page
    document = cite_page(identify_page(page.url), page.title, page.url)
    date = f"({describe_date(page.published)})\n" if page.published else ""
    content = date + join_snippets(read.snippets)
    return Reference(numbers.assign(document.document_id), document, content)
