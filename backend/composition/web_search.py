"""Put the search of the web together: what admins stored, the providers, and how their pages are fetched."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backend.store.web_search import StoredProvider, Wait, WebRules
from backend.web_search.domains import ANY_DOMAIN
from backend.web_search.pacing import Pacer
from backend.web_search.plain_fetch import fetch_html
from backend.web_search.search import WebSearch, WebSearchSetup
from connectors.errors import NotConfiguredError, TemporarilyUnavailableError

if TYPE_CHECKING:
    from backend.store.database import Database
    from backend.store.sync.credential_vault import Vault
    from backend.store.web_cache import CachedSession, CacheKind
    from backend.web_search.domains import DomainRules
    from backend.web_search.page_reader import PageReader
    from backend.web_search.providers.provider import SearchProvider
    from backend.web_search.rendering import PageRenderer
    from backend.web_search.session_cache import CacheEntries, CacheObserver, Outcome
    from backend.web_search.web_session import WebSession
    from indexing.embedding.language_support import EmbedderWithLanguages
    from indexing.runtime.deadline import Deadline

LOG = logging.getLogger("quarry.web_search")
_OFF = WebRules(is_on=False, allowed_domains=(), blocked_domains=(), keeps_internal_names=True)


def make_web_search(
    find_database: "Callable[[], Database | None]",
    open_vault: "Callable[[], Vault]",
    render: "PageRenderer",
) -> WebSearch:
    """Return the web search of a home.

    Args:
        find_database: returns None where there is no database yet; then the web is off.
        render: opens result pages; where there is no browser, they are fetched as their servers send them.
    """

    def fetch_rendered(url: str, deadline: "Deadline") -> str:
        try:
            # An admin has named this address.
            return render(url, deadline, ANY_DOMAIN).html
        except NotConfiguredError:
            return fetch_html(url, deadline)

    def read_setup() -> WebSearchSetup:
        from backend.store import web_search

        database = find_database()
        if database is None:
            return WebSearchSetup(rules=_OFF, providers=())
        return WebSearchSetup(
            rules=web_search.read_rules(database),
            providers=tuple(web_search.list_providers(database)),
        )

    def open_provider(provider: StoredProvider) -> "SearchProvider":
        from backend.web_search.providers.registry import create_provider
        from backend.web_search.service import open_credential

        values = provider.values
        credential = open_credential(values, open_vault)
        return create_provider(
            values.kind, values.name, values.settings, credential, fetch_rendered
        )

    def store_wait(provider: StoredProvider, wait: Wait | None) -> None:
        from backend.store import web_search

        if (database := find_database()) is not None:
            web_search.set_wait(database, provider.id, wait)

    return WebSearch(read_setup, open_provider, store_wait, Pacer())


class WebSessions:
    """Opens the web to turns, each with what its session has searched and read.

    Args:
        open_pages: returns what reads pages; it is called only where the web is on.
    """

    def __init__(
        self,
        search: WebSearch,
        open_pages: "Callable[[], PageReader]",
        find_database: "Callable[[], Database | None]",
        find_embedding: "Callable[[], EmbedderWithLanguages]",
    ) -> None:
        self._search = search
        self._open_pages = open_pages
        self._find_database = find_database
        self._find_embedding = find_embedding
        self._observers: list[CacheObserver] = []

    @property
    def is_on(self) -> bool:
        """Whether an admin has switched the web on."""
        return self._search.is_on

    def add_observer(self, observer: "CacheObserver") -> None:
        self._observers.append(observer)

    def looked_up_in_web_cache(self, kind: "CacheKind", outcome: "Outcome") -> None:
        """Tell each observer; see `backend.web_search.session_cache.CacheObserver`."""
        for observer in self._observers:
            observer.looked_up_in_web_cache(kind, outcome)

    @contextmanager
    def open(
        self, session: "CachedSession | None", domains: "DomainRules"
    ) -> "Iterator[WebSession | None]":
        """Yield the web for one turn; None where it is switched off.

        Args:
            session: goes on with this turn; None for a turn that belongs to no conversation.
            domains: narrow those that the admins permit.
        """
        from backend.web_search.session_cache import SessionCache
        from backend.web_search.web_session import WebSession

        if not self.is_on:
            yield None
            return
        self._touch(session)
        try:
            yield WebSession(
                search=self._search,
                pages=self._open_pages(),
                cache=SessionCache(self._open_entries(session), self),
                embedding=self._find_embedding(),
                domains=domains,
            )
        finally:
            self._touch(session)

    def _open_entries(self, session: "CachedSession | None") -> "CacheEntries":
        from backend.web_search.session_cache import ConversationEntries, TurnEntries

        database = self._find_database()
        if session is None or database is None:
            return TurnEntries()
        return ConversationEntries(database, session, lambda: datetime.now(UTC))

    def _touch(self, session: "CachedSession | None") -> None:
        from backend.store import web_cache

        database = self._find_database()
        if session is None or database is None:
            return
        try:
            web_cache.touch(database, session, datetime.now(UTC))
        except TemporarilyUnavailableError as error:
            # A turn needs no cache; a session that is not renewed ends sooner.
            LOG.warning("the session of a web cache was not renewed: %s", error)
