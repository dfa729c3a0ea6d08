"""The open web as the turns of one session use it: each search and each page is asked for once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backend.web_search.addresses import get_host
from backend.web_search.domains import ANY_DOMAIN, DomainRules
from backend.web_search.page_reader import PageReader
from backend.web_search.page_snippets import SnippetBudget, choose_snippets
from backend.web_search.results import (
    Freshness,
    PageOutcome,
    UnreadablePage,
    WebPage,
    WebQuery,
    WebResult,
)
from backend.web_search.search import LONGEST_QUERY, WebSearch, WebSearchSetup
from backend.web_search.search_outcome import FailureKind, WebOutcome
from backend.web_search.session_cache import SessionCache
from connectors.errors import ConflictError, TemporarilyUnavailableError
from indexing.embedding.language_support import EmbedderWithLanguages
from indexing.runtime.deadline import Deadline, DeadlineExceededError

TOO_LATE = "There was no time left to search the web."
_FAILED = "The web search does not answer now."
_LIMITED = "The web search has reached its limit for now."
_LIMITS = {FailureKind.QUOTA, FailureKind.RATE_LIMIT}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFinding:
    """What a search of the web came to.

    Attributes:
        query: As it was sent.
        receivers: Whom it was sent to, such as hosts; nobody where it was searched before.
        answered_by: The one of the receivers whose results these are; empty where none answered now.
        problem: A sentence for the asker where no provider answered; empty where one did, found it something or not.
    """

    query: str
    results: tuple[WebResult, ...]
    receivers: tuple[str, ...] = ()
    answered_by: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSession:
    """Thread-safe.

    Attributes:
        domains: Narrow those that the administrators permit.
        language: Of the results that are preferred (ISO 639-1); None for any.
    """

    search: WebSearch
    pages: PageReader
    cache: SessionCache
    embedding: EmbedderWithLanguages
    domains: DomainRules = ANY_DOMAIN
    language: str | None = None

    @property
    def keeps_internal_names(self) -> bool:
        """Whether queries are kept free of internal names; so it is where the database does not say."""
        try:
            return self.search.keeps_internal_names
        except TemporarilyUnavailableError:
            return True

    def find(
        self, query: str, limit: int, deadline: Deadline, freshness: Freshness | None = None
    ) -> WebFinding:
        """Search the web; whatever fails is a finding too."""
        text = " ".join(query.split())[:LONGEST_QUERY]
        wanted = WebQuery(text=text, limit=limit, freshness=freshness, language=self.language)
        try:
            setup = self.search.read_setup()
            rules = setup.domains.narrowed_by(self.domains)
            known = self._find_cached(wanted, rules)
            return known or self._ask(setup, wanted, deadline)
        except ConflictError as error:
            return WebFinding(query=text, results=(), problem=str(error))
        except TemporarilyUnavailableError:
            return WebFinding(query=text, results=(), problem=_FAILED)
        except DeadlineExceededError:
            return WebFinding(query=text, results=(), problem=TOO_LATE)

    def read(self, urls: Sequence[str], deadline: Deadline) -> list[PageOutcome]:
        """Read pages side by side; the outcomes are in the order of the addresses."""
        try:
            rules = self.search.read_setup().domains.narrowed_by(self.domains)
        except (ConflictError, TemporarilyUnavailableError) as error:
            return [UnreadablePage(url, str(error)) for url in urls]
        known = {url: self.cache.find_page(url) for url in urls if rules.permits(url)}
        missing = [url for url, page in known.items() if page is None]
        read = dict(zip(missing, self.pages.read_all(missing, deadline, rules), strict=True))
        for url, outcome in read.items():
            if isinstance(outcome, WebPage):
                self.cache.keep_page(url, outcome)
        return [_check_domain(url, known.get(url) or read.get(url), rules) for url in urls]

    def choose_snippets(
        self, page: WebPage, question: str, budget: SnippetBudget, deadline: Deadline
    ) -> tuple[str, ...]:
        """Return the parts of a page that are nearest to a question, in the order of the page."""
        chosen = choose_snippets(page.text, question, self.embedding, budget, deadline)
        return tuple(one.text for one in sorted(chosen, key=lambda snippet: snippet.span))

    def _find_cached(self, wanted: WebQuery, rules: DomainRules) -> WebFinding | None:
        """Return what was found before, without what the rules have come to forbid."""
        found = self.cache.find_results(self._to_key(wanted))
        if found is None:
            return None
        permitted = tuple(one for one in found if rules.permits(one.url))
        return WebFinding(query=wanted.text, results=permitted)

    def _ask(self, setup: WebSearchSetup, wanted: WebQuery, deadline: Deadline) -> WebFinding:
        outcome = self.search.search_with(setup, wanted, deadline, self.domains)
        if outcome.results:
            self.cache.keep_results(self._to_key(wanted), outcome.results)
        receivers = {f"{one.service} ({one.receiver})": one for one in outcome.attempts if one.sent}
        return WebFinding(
            query=wanted.text,
            results=outcome.results,
            receivers=tuple(receivers),
            answered_by=next((name for name, one in receivers.items() if one.found), ""),
            problem=_describe_problem(outcome),
        )

    def _to_key(self, wanted: WebQuery) -> WebQuery:
        sites = (*sorted(self.domains.allowed or ()), "", *sorted(self.domains.blocked))
        return replace(wanted, sites=sites)


def _check_domain(url: str, outcome: PageOutcome | None, rules: DomainRules) -> PageOutcome:
    """Keep what is read to the permitted domains, where a page leads to another one as well."""
    if outcome is not None and rules.permits(outcome.url):
        return outcome
    host = get_host(url if outcome is None else outcome.url) or "this address"
    return UnreadablePage(url, f"Pages of {host} may not be read here.")


def _describe_problem(outcome: WebOutcome) -> str:
    kinds = [one.failure.kind for one in outcome.attempts if one.failure]
    if outcome.results or FailureKind.NOTHING_FOUND in kinds or not kinds:
        return ""
    return _LIMITED if _LIMITS.issuperset(kinds) else _FAILED
