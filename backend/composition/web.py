"""Open what reads and searches the web: pages, the browser, the providers, and the web of a turn."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from backend.settings import Settings

if TYPE_CHECKING:
    from backend.composition.web_search import WebSessions
    from backend.store.audit import Actor
    from backend.store.database import Database
    from backend.store.sync.credential_vault import Vault
    from backend.web_search.browser.browser_reader import BrowserReader
    from backend.web_search.page_reader import PageReader
    from backend.web_search.search import WebSearch
    from backend.web_search.service import WebSearchService
    from indexing.embedding.language_support import EmbedderWithLanguages


@dataclass(frozen=True)
class WebParts:
    """The web of a home. Only `service` creates a database where there is none."""

    settings: Settings
    find_database: "Callable[[], Database | None]"
    """Returns None where there is no database yet; then the web is off."""
    open_database: "Callable[[], Database]"
    open_vault: "Callable[[], Vault]"
    find_embedding: "Callable[[], EmbedderWithLanguages]"

    @cached_property
    def page_reader(self) -> "PageReader":
        """Reads pages of the open web; nothing in the settings opens more than the public web to it."""
        from backend.web_search.page_fetcher import PageFetcher
        from backend.web_search.page_reader import PageReader

        return PageReader(PageFetcher(), self.browser.render)

    @cached_property
    def browser(self) -> "BrowserReader":
        """Opens the pages whose text scripts write; to be closed, and started only for the first one."""
        from backend.web_search.browser.browser_reader import BrowserLimits, BrowserReader

        limits = BrowserLimits(memory_bytes=self.settings.browser_megabytes << 20)
        return BrowserReader(self.settings.browser_path, limits)

    @cached_property
    def search(self) -> "WebSearch":
        from backend.composition.web_search import make_web_search

        return make_web_search(self.find_database, self.open_vault, self.browser.render)

    @cached_property
    def sessions(self) -> "WebSessions":
        """Opens the web to turns."""
        from backend.composition.web_search import WebSessions

        return WebSessions(
            self.search, lambda: self.page_reader, self.find_database, self.find_embedding
        )

    def service(self, actor: "Actor") -> "WebSearchService":
        """Return what admins do to web search."""
        from backend.web_search.service import WebSearchService

        return WebSearchService(self.open_database(), self.open_vault, self.search, actor)

    def close(self) -> None:
        """Close the browser, if it was opened."""
        if "browser" in vars(self):
            self.browser.close()
