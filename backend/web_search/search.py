"""Search the web: ask the providers in the order of the admins, until one of them finds something."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice

from backend.store.web_search import StoredProvider, Wait, WebRules
from backend.web_search.domains import ANY_DOMAIN, DomainRules
from backend.web_search.pacing import Pacer
from backend.web_search.providers.provider import QuotaExceededError, SearchProvider
from backend.web_search.providers.registry import PROVIDER_KINDS, describe_receiver
from backend.web_search.result_cleaning import clean_results
from backend.web_search.results import Freshness, WebQuery, WebResult
from backend.web_search.search_outcome import (
    LONGEST_LIMIT,
    NOTHING_FOUND,
    FailureKind,
    ProviderAttempt,
    ProviderFailure,
    WebOutcome,
    describe_failure,
)
from connectors.errors import (
    ConflictError,
    QuarryError,
    TemporarilyUnavailableError,
)
from connectors.http_client.response import RateLimitedError
from indexing.runtime.deadline import Deadline, DeadlineExceededError

LOG = logging.getLogger("quarry.web_search")

LONGEST_QUERY = 400
"""Characters; search engines cut or refuse longer ones."""
SWITCHED_OFF = "The web search is switched off. An admin can switch it on: quarry web on"
_MOST_WANTED = 20
"""Results that are asked for where rules leave some of them out."""
_MOST_SITES = 10
"""Domains that fit into a query."""
_SHARE = 0.5
"""Of the time that is left, what a provider may take that is not the last one."""
_SHORT_WAIT = 1.5
"""Seconds that are waited for a provider rather than asking the next one."""
_LONG_WAIT = timedelta(minutes=1)
"""A wait of this length is stored: other processes keep to it, and admins see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchSetup:
    """What admins have set."""

    rules: WebRules
    providers: tuple[StoredProvider, ...]
    """All of them, in their order."""

    @property
    def domains(self) -> DomainRules:
        """Those that the admins permit."""
        return DomainRules.of(self.rules.allowed_domains, self.rules.blocked_domains)


class WebSearch:
    """The search of the open web. Safe to use from several threads; the limits of each provider hold for a process.

    Args:
        read_setup: is asked at each search: what an admin changes counts from the next one on.
        open_provider: makes the provider of what is stored. Raises QuarryError where that cannot be used.
        store_wait: notes that a provider is not asked until then; with None, that it may be.
    """

    def __init__(
        self,
        read_setup: Callable[[], WebSearchSetup],
        open_provider: Callable[[StoredProvider], SearchProvider],
        store_wait: Callable[[StoredProvider, Wait | None], None],
        pacer: Pacer,
    ) -> None:
        self._read_setup = read_setup
        self._open_provider = open_provider
        self._store_wait = store_wait
        self._pacer = pacer

    @property
    def is_on(self) -> bool:
        """Whether an admin has switched it on."""
        return self._read_setup().rules.is_on

    def read_setup(self) -> WebSearchSetup:
        """Return what holds for a search, or for the pages that are read, from now on.

        Raises:
            ConflictError: the web is switched off.
        """
        setup = self._read_setup()
        _check_is_on(setup.rules)
        return setup

    @property
    def keeps_internal_names(self) -> bool:
        """Whether exact terms that private documents alone hold are to be kept out of queries."""
        return self._read_setup().rules.keeps_internal_names

    def search(
        self,
        query: str,
        limit: int,
        freshness: Freshness | None,
        language: str | None,
        deadline: Deadline,
        domains: DomainRules = ANY_DOMAIN,
    ) -> WebOutcome:
        """Return what the first provider finds that finds something; where none does, why not.

        Args:
            limit: the most results, at least 1.
            domains: narrow those that the admins permit.

        Raises:
            ConflictError: the web is switched off, or there is no provider that may be asked.
            DeadlineExceededError: the time is up before a provider is asked.
        """
        wanted = WebQuery(text=query, limit=limit, freshness=freshness, language=language)
        return self.search_with(self.read_setup(), wanted, deadline, domains)

    def search_with(
        self, setup: WebSearchSetup, query: WebQuery, deadline: Deadline, domains: DomainRules
    ) -> WebOutcome:
        """See `search`; `setup` is what `read_setup` has returned just now."""
        enabled = [one for one in setup.providers if one.values.is_enabled]
        if not enabled:
            raise ConflictError(
                "No web search provider is enabled. To add one: quarry web providers add"
            )
        deadline.check()
        rules = setup.domains.narrowed_by(domains)
        if rules.allowed is not None and not rules.allowed:
            return WebOutcome(results=(), attempts=())
        wanted = replace(query, text=" ".join(query.text.split())[:LONGEST_QUERY])
        return self._ask_in_order(enabled, wanted, rules, deadline)

    async def asearch(
        self,
        query: str,
        limit: int,
        freshness: Freshness | None,
        language: str | None,
        deadline: Deadline,
        domains: DomainRules = ANY_DOMAIN,
    ) -> WebOutcome:
        """See `search`. A task that is cancelled asks no further provider."""
        with deadline.ended_with_block() as bounded:
            return await asyncio.to_thread(
                self.search, query, limit, freshness, language, bounded, domains
            )

    def test(
        self, provider: StoredProvider, query: str, limit: int, deadline: Deadline
    ) -> WebOutcome:
        """Ask one provider, whether it waits or not, and whether the web is on or not. One that answers may be asked again."""
        wanted = WebQuery(text=" ".join(query.split())[:LONGEST_QUERY], limit=limit)
        rules = self._read_setup().domains
        self._pacer.forget(provider.id)
        results, attempt = self._ask(provider, wanted, rules, deadline)
        if provider.wait is not None and attempt.failure in (None, NOTHING_FOUND):
            self._store_wait(provider, None)
        return WebOutcome(results=tuple(results), attempts=(attempt,))

    def _ask_in_order(
        self,
        providers: list[StoredProvider],
        wanted: WebQuery,
        rules: DomainRules,
        deadline: Deadline,
    ) -> WebOutcome:
        waiting = {one.id: _find_wait(one) for one in providers}
        ready = [one for one in providers if waiting[one.id] is None]
        attempts: list[ProviderAttempt] = []
        for provider in providers:
            if wait := waiting[provider.id]:
                attempts.append(_describe_attempt(provider, failure=wait))
                continue
            share = _share_time(deadline, is_last=provider is ready[-1])
            results, attempt = self._ask(provider, wanted, rules, share)
            attempts.append(attempt)
            if results:
                return WebOutcome(results=tuple(results), attempts=tuple(attempts))
            if not deadline.remaining():
                break
        return WebOutcome(results=(), attempts=tuple(attempts))

    def _ask(
        self, provider: StoredProvider, wanted: WebQuery, rules: DomainRules, deadline: Deadline
    ) -> tuple[list[WebResult], ProviderAttempt]:
        query = _adapt_query(wanted, rules)
        if refusal := self._take_turn(provider, deadline):
            return [], _describe_attempt(provider, failure=refusal)
        try:
            found = self._open_provider(provider).search(query, deadline)
        except (QuarryError, DeadlineExceededError) as error:
            failure = self._note_failure(provider, error, deadline)
            return [], _describe_attempt(provider, failure, query)
        results = list(islice(clean_results(found, rules), wanted.limit))
        nothing = None if results else NOTHING_FOUND
        return results, _describe_attempt(provider, nothing, query, len(results))

    def _take_turn(self, provider: StoredProvider, deadline: Deadline) -> ProviderFailure | None:
        """Count a search, after a wait where a short one does; return why it may not be made."""
        limit = get_limit(provider)
        wait = self._pacer.take_turn(provider.id, limit)
        if wait is not None and wait <= min(_SHORT_WAIT, deadline.remaining() / 2):
            deadline.sleep(wait)
            wait = self._pacer.take_turn(provider.id, limit)
        if wait is None:
            return None
        reason = f"It was asked so often that it has to wait for {wait:.0f} s; its limit is {limit} searches a minute."
        return ProviderFailure(FailureKind.RATE_LIMIT, reason)

    def _note_failure(
        self,
        provider: StoredProvider,
        error: QuarryError | DeadlineExceededError,
        deadline: Deadline,
    ) -> ProviderFailure:
        """Remember how long the provider asks to be left alone."""
        failure = describe_failure(error, is_late=not deadline.remaining())
        LOG.warning("The web search of %s failed (%s).", provider.name, failure.kind)
        if isinstance(error, RateLimitedError | QuotaExceededError):
            self._remember_wait(provider, error.retry_after, failure)
        return failure

    def _remember_wait(
        self, provider: StoredProvider, wait: timedelta, failure: ProviderFailure
    ) -> None:
        if wait < _LONG_WAIT:
            self._pacer.rest(provider.id, wait.total_seconds())
            return
        try:
            self._store_wait(provider, Wait(until=datetime.now(UTC) + wait, reason=failure.reason))
        except TemporarilyUnavailableError as error:
            # The search goes on; the next one asks the provider once more.
            LOG.warning("That %s waits was not noted: %s", provider.name, error)


def get_limit(provider: StoredProvider) -> int:
    """Return how many searches a minute a provider is asked at most."""
    kind = PROVIDER_KINDS.get(provider.values.kind)
    return provider.values.per_minute or (kind.per_minute if kind else 1)


def _check_is_on(rules: WebRules) -> None:
    if not rules.is_on:
        raise ConflictError(SWITCHED_OFF)


def _adapt_query(wanted: WebQuery, rules: DomainRules) -> WebQuery:
    """Ask for the domains that are allowed, where they are few, and for more results than are shown, where rules drop some."""
    if rules == ANY_DOMAIN:
        return wanted
    allowed = sorted(rules.allowed or ())
    return WebQuery(
        text=wanted.text,
        limit=max(wanted.limit, _MOST_WANTED),
        freshness=wanted.freshness,
        language=wanted.language,
        sites=tuple(allowed) if len(allowed) <= _MOST_SITES else (),
    )


def _share_time(deadline: Deadline, *, is_last: bool) -> Deadline:
    return deadline if is_last else deadline.limited_to(deadline.remaining() * _SHARE)


def _find_wait(provider: StoredProvider) -> ProviderFailure | None:
    wait, now = provider.wait, datetime.now(UTC)
    if wait is None or wait.until <= now:
        return None
    kind = FailureKind.QUOTA if wait.until > now + LONGEST_LIMIT else FailureKind.RATE_LIMIT
    reason = f"{wait.reason} It is asked again after {wait.until:%Y-%m-%d %H:%M} UTC."
    return ProviderFailure(kind, reason)


def _describe_attempt(
    provider: StoredProvider,
    failure: ProviderFailure | None,
    sent: WebQuery | None = None,
    found: int = 0,
) -> ProviderAttempt:
    kind = PROVIDER_KINDS.get(provider.values.kind)
    return ProviderAttempt(
        provider=provider.name,
        service=kind.title if kind else provider.values.kind,
        receiver=describe_receiver(provider.values.kind, provider.values.settings),
        sent=sent,
        found=found,
        failure=failure,
    )
