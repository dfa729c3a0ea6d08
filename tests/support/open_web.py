"""An open web for turns: a provider of web search that speaks its protocol, and pages, all on this machine.

with open_web(FOUND) as web:
    web.session().find("Danish law", 5, Deadline.after(5))
    assert web.queries == ["Danish law"]
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from backend.store.web_search import ProviderValues, StoredProvider, Wait, WebRules
from backend.web_search.domains import ANY_DOMAIN, DomainRules
from backend.web_search.pacing import Pacer
from backend.web_search.page_fetcher import PageFetcher
from backend.web_search.page_reader import PageReader
from backend.web_search.plain_fetch import fetch_html
from backend.web_search.providers.provider import SearchProvider
from backend.web_search.providers.registry import create_provider
from backend.web_search.search import LONGEST_QUERY, WebSearch, WebSearchSetup
from backend.web_search.session_cache import Outcome, SessionCache, TurnEntries
from backend.web_search.web_session import WebSession
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING, EmbedderWithLanguages
from indexing.text.tokenizer import plain_words
from tests.contract.provider_worlds.api_worlds import TavilyWorld
from tests.contract.provider_worlds.world import SECRET, Item
from tests.support.local_web import LocalWeb, local_web
from tests.support.services.serving import ReceivedRequest, Reply, RunningService, serve

ON = WebRules(is_on=True, allowed_domains=(), blocked_domains=(), keeps_internal_names=True)
MOST_RESULTS = 20
FEW_WORDS = {"a", "the", "of", "is", "in", "for", "and", "our", "does", "how", "what", "with"}


class WordEngine(TavilyWorld):
    """Finds the pages that share a word with the query; refuses what a provider refuses, and queries that say nothing."""

    def __init__(self, pages: Sequence[Item]) -> None:
        super().__init__()
        self.pages = pages
        self.before: Callable[[], object] = lambda: None
        """What a search waits for."""

    def __call__(self, request: ReceivedRequest) -> Reply:
        asked = self.read_query(request)
        text = str(asked["text"])
        assert 0 < len(text) <= LONGEST_QUERY
        assert text == " ".join(text.split())
        assert plain_words(text)
        assert 1 <= asked["limit"] <= MOST_RESULTS
        self.before()
        if self.once or self.instead:
            return super().__call__(request)
        found = WordEngine(())
        found.items = [one for one in self.pages if _share_word(text, one)]
        return found._answer()


def _share_word(query: str, item: Item) -> bool:
    said = set(plain_words(f"{item.title} {item.summary}"))
    return bool(said.intersection(plain_words(query)) - FEW_WORDS)


@dataclass
class OpenWeb:
    """What admins have set of it is `rules` and `providers`."""

    engine: WordEngine
    service: RunningService
    pages: LocalWeb
    rules: WebRules = ON
    providers: tuple[StoredProvider, ...] = ()
    setups_read: int = 0
    """How often it was asked what admins have set."""
    cached: list[tuple[str, Outcome]] = field(default_factory=list)
    """What was looked for in caches."""

    def __post_init__(self) -> None:
        self.providers = (self.make_provider(1, "desk"),)
        self.search = WebSearch(self._read_setup, self._open, self._store_wait, Pacer())
        fetcher = PageFetcher(self.pages.allowed, self.pages.resolve)
        self._reader = PageReader(fetcher)

    def make_provider(self, number: int, name: str, url: str = "") -> StoredProvider:
        values = ProviderValues(
            name=name,
            kind=self.engine.kind,
            settings=self.engine.settings(url or self.service.url),
            sealed_credential=None,
            is_enabled=True,
            per_minute=600,
        )
        return StoredProvider(id=number, values=values, wait=None)

    @property
    def queries(self) -> list[str]:
        """What was sent to the provider, sorted: searches run side by side."""
        return sorted(str(request.json()["query"]) for request in self.service.log)

    def session(self, domains: DomainRules = ANY_DOMAIN) -> WebSession:
        return WebSession(
            search=self.search,
            pages=self._reader,
            cache=SessionCache(TurnEntries(), self),
            embedding=EmbedderWithLanguages(HashingEmbedder(), EVERYTHING),
            domains=domains,
        )

    def looked_up_in_web_cache(self, kind: str, outcome: Outcome) -> None:
        self.cached.append((kind, outcome))

    def _read_setup(self) -> WebSearchSetup:
        self.setups_read += 1
        return WebSearchSetup(rules=self.rules, providers=self.providers)

    def _open(self, provider: StoredProvider) -> SearchProvider:
        values = provider.values
        credential: dict[str, Any] = {"key": SECRET}
        return create_provider(values.kind, values.name, values.settings, credential, fetch_html)

    def _store_wait(self, provider: StoredProvider, wait: Wait | None) -> None:
        del provider, wait


@contextmanager
def open_web(pages: Sequence[Item]) -> Iterator[OpenWeb]:
    """Serve a search engine that knows these pages, and the local web."""
    engine = WordEngine(pages)
    with serve(engine) as service, local_web() as web:
        yield OpenWeb(engine, service, web)
