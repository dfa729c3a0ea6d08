"""Put the search of the web together: what admins stored, the providers, and how their pages are fetched."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from backend.store.web_search import StoredProvider, Wait, WebRules
from backend.web_search.pacing import Pacer
from backend.web_search.plain_fetch import fetch_html
from backend.web_search.search import WebSearch, WebSearchSetup
from connectors.errors import NotConfiguredError

if TYPE_CHECKING:
    from backend.store.credential_vault import Vault
    from backend.store.database import Database
    from backend.web_search.providers.provider import SearchProvider
    from backend.web_search.rendering import PageRenderer
    from indexing.runtime.deadline import Deadline

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
            return render(url, deadline).html
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
