"""Look a message up on the web: searches and pages side by side, as references."""

import itertools
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from backend.chat.citations.citation_processor import CitedDocument, SourceKind
from backend.chat.events import ChatEvent, PagesRead, WebSearched
from backend.chat.intent.search_plan import Queries, Searches, SearchPlan, Summary, web_queries
from backend.chat.references import Reference
from backend.search.futures import PendingCompletion, run_in_background
from backend.search.llm_protocol import CompletionError
from backend.search.models import DocumentNumbers
from backend.web_search.addresses import normalize_address
from backend.web_search.describing import describe_date, describe_failure
from backend.web_search.page_snippets import SnippetBudget
from backend.web_search.results import BlockedPage, UnreadablePage, WebPage, WebResult
from backend.web_search.web_session import WebFinding, WebSession
from indexing.runtime.deadline import Deadline

MAX_RESULTS = 10
"""Of all queries of a message together."""
RESULTS_PER_QUERY = 8
MAX_PAGES = 8
MAX_PAGE_CHARACTERS = 6_000
MIN_PAGE_CHARACTERS = 500
TOKEN_CHARACTERS = 2
"""Of a page for each token that its reference may have: fewer than texts have, in any language."""
SNIPPETS = 4


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page, and the parts of it that are nearest to the question."""

    page: WebPage
    snippets: tuple[str, ...]


_Read: TypeAlias = ReadPage | BlockedPage | UnreadablePage


@dataclass(frozen=True, slots=True)
class WebLookup:
    """A look-up of the web that runs."""

    findings: Sequence[PendingCompletion[WebFinding]]
    pages: PendingCompletion[Sequence[_Read]] | None

    def follow(self, numbers: DocumentNumbers) -> Generator[ChatEvent, None, "WebReferences"]:
        """Wait for all of it, and return what was found under the next free numbers; pages that were asked for come first."""
        findings: list[WebFinding] = []
        for pending in self.findings:
            found = _take(pending)
            findings += found
            yield from map(WebSearched, found)
        read = [one for pages in ([self.pages] if self.pages else []) for one in _take_all(pages)]
        if read:
            yield PagesRead(tuple(one.page if isinstance(one, ReadPage) else one for one in read))
        return _make_references(findings, read, numbers)


@dataclass(frozen=True, slots=True)
class WebReferences:
    references: tuple[Reference, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be searched or read, in sentences."""


def start_web_lookup(
    session: WebSession, plan: SearchPlan, room: int, deadline: Deadline
) -> WebLookup:
    """Begin to search and read what a plan asks of the web.

    Args:
        room: tokens that the references may have together.
    """
    match plan:
        case Summary(question=question, links=links):
            queries: tuple[str, ...] = ()
        case Searches(web=Queries() as web, links=links):
            question, queries = web.message, web_queries(web)
        case Searches(links=links):
            question, queries = "", ()
    urls = list(dict.fromkeys(link.url for link in links))[:MAX_PAGES]
    findings = [
        run_in_background(partial(session.find, query, RESULTS_PER_QUERY, deadline), deadline)
        for query in queries
    ]
    if not urls:
        return WebLookup(findings, None)
    most = min(MAX_PAGE_CHARACTERS, room * TOKEN_CHARACTERS // len(urls))
    budget = SnippetBudget(characters=max(MIN_PAGE_CHARACTERS, most), snippets=SNIPPETS)
    read = run_in_background(lambda: _read(session, urls, question, budget, deadline), deadline)
    return WebLookup(findings, read)


def identify_page(url: str) -> str:
    """Return the id of a page of the web as a source: the address that all its spellings share."""
    return normalize_address(url) or url


def _read(
    session: WebSession,
    urls: Sequence[str],
    question: str,
    budget: SnippetBudget,
    deadline: Deadline,
) -> Sequence[_Read]:
    return [
        ReadPage(outcome, session.choose_snippets(outcome, question, budget, deadline))
        if isinstance(outcome, WebPage)
        else outcome
        for outcome in session.read(urls, deadline)
    ]


def _take(pending: PendingCompletion[WebFinding]) -> list[WebFinding]:
    try:
        return [pending.result()]
    except CompletionError:
        return [WebFinding(query="", results=(), problem="The web search took too long.")]


def _take_all(pending: PendingCompletion[Sequence[_Read]]) -> Sequence[_Read]:
    try:
        return pending.result()
    except CompletionError:
        return ()


def _make_references(
    findings: Sequence[WebFinding], pages: Sequence[_Read], numbers: DocumentNumbers
) -> WebReferences:
    read = [_refer_to_page(page, numbers) for page in pages if isinstance(page, ReadPage)]
    known = {one.document.document_id for one in read}
    results = [one for one in _merge(findings) if identify_page(one.url) not in known]
    found = [refer_to_result(one, numbers) for one in results[:MAX_RESULTS]]
    problems = dict.fromkeys(one.problem for one in findings if one.problem)
    unread = [describe_failure(page) for page in pages if not isinstance(page, ReadPage)]
    return WebReferences((*read, *found), (*problems, *unread))


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


def refer_to_result(result: WebResult, numbers: DocumentNumbers) -> Reference:
    """Return a result of a search under the number of its page."""
    date = f"({result.published:%Y-%m-%d}) " if result.published else ""
    document = CitedDocument(
        identify_page(result.url), result.title or result.url, result.url, SourceKind.WEB
    )
    return Reference(numbers.assign(document.document_id), document, date + result.summary)


def _refer_to_page(read: ReadPage, numbers: DocumentNumbers) -> Reference:
    page = read.page
    document = CitedDocument(
        identify_page(page.url), page.title or page.url, page.url, SourceKind.WEB
    )
    date = f"({describe_date(page.published)})\n" if page.published else ""
    content = date + "\n[…]\n".join(read.snippets)
    return Reference(numbers.assign(document.document_id), document, content)
