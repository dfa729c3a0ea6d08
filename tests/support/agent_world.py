"""A turn of Agent mode with all that it uses: a scripted model, a few documents, a search engine and a web on this machine.

    with agent_world() as world:
        world.put("news.test", "/pool", page("The pool", "It opens in May."))
        world.engine.items = [Item("The pool", world.url("news.test", "/pool"), "It opens…")]
        done = world.ask([web_search("pool"), Say("In May [1].")], message="When does the pool open?")
        assert world.pages_asked == []

Every name that ends with `.test` leads to the same server, which tells its sites apart by the host that it is asked for.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any

from backend.chat.chat_state import ChatStateContainer
from backend.chat.events import AnswerDone, ChatEvent, PagesRead, TurnFailed, WebSearched
from backend.chat.llm.client import LanguageModel
from backend.chat.llm.model_settings import ModelSettings
from backend.chat.llm_loop import run_llm_loop
from backend.chat.turn import ChatDependencies, ChatTurn
from backend.chat.turn_settings import AgentMode
from backend.search.models import DocumentNumbers
from backend.search.search_tool import SearchTool
from backend.store.accounts.people import NOBODY
from backend.store.web_search import ProviderValues, StoredProvider, WebRules
from backend.web_search.pacing import Pacer
from backend.web_search.page_fetcher import PageFetcher
from backend.web_search.page_reader import PageReader
from backend.web_search.plain_fetch import fetch_html
from backend.web_search.providers.provider import SearchProvider
from backend.web_search.providers.registry import create_provider
from backend.web_search.result_text import CITATION_RULES, HOW_TO_CITE
from backend.web_search.search import WebSearch, WebSearchSetup
from backend.web_search.session_cache import CacheEntries, Outcome, SessionCache, TurnEntries
from backend.web_search.web_session import WebSession
from connectors.access import Access, Readers
from connectors.http_client.address_guard import AllowedNetworks
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING, EmbedderWithLanguages
from indexing.embedding.token_counting import estimated_tokens
from indexing.runtime.deadline import Deadline
from tests.contract.provider_worlds.api_worlds import SearxngWorld, TavilyWorld
from tests.contract.provider_worlds.world import SECRET, Item, ProviderWorld
from tests.support.scripted_model import Reply, Request, ScriptedModel, ToolUse
from tests.support.search import MemoryIndex, chunk
from tests.support.services import serving
from tests.support.services.serving import ReceivedRequest, RunningService, serve

ANN = Readers.of("user:ann@example.com")
PRIVATE = Access.to(["user:ann@example.com"])
SITES = ("news.test", "law.test", "evil.test", "shop.test")
CORPUS = (
    chunk("kb:leave", 0, "Annual leave is 25 days a year."),
    chunk(
        "kb:project",
        0,
        "The project Aurora Falcon has the code ZX-4417. Its budget is 1,250,000 euros, and its supplier is Gerda Krummholz.",
        PRIVATE,
    ),
)
FILLING = (
    "The town has said this week what changes for everybody who lives there, and from when on it holds. "
    "Nobody has to apply for it, and what was agreed before stays as it is until the end of the year. "
    "Whoever has questions finds the office on the square, on each day of the week but on Sunday. "
)

Page = Callable[[ReceivedRequest], serving.Reply]


def page(title: str, body: str, *, head: str = "", lang: str = "en") -> str:
    """An article whose body is HTML, long enough to be one."""
    text = f"<article><h1>{escape(title)}</h1><p>{FILLING * 2}</p>{body}</article>"
    named = f"<meta charset='utf-8'><title>{escape(title)}</title>{head}"
    return f"<!DOCTYPE html><html lang='{lang}'><head>{named}</head><body>{text}</body></html>"


def internal_search(*queries: str) -> ToolUse:
    return ToolUse("internal_search", {"queries": list(queries)})


def web_search(query: str) -> ToolUse:
    return ToolUse("web_search", {"query": query})


def open_url(*pages: str) -> ToolUse:
    return ToolUse("open_url", {"pages": list(pages)})


def tool_results(request: Request) -> list[str]:
    return [m["content"] for m in request.messages if m["role"] == "tool"]


@dataclass
class Web:
    """What the sites serve, and what they were asked for."""

    service: RunningService | None = None
    pages: dict[str, str | Page] = field(default_factory=dict)
    """HTML, or what makes a reply, by host and path."""

    def __call__(self, request: ReceivedRequest) -> serving.Reply:
        host = request.headers["host"].partition(":")[0]
        served = self.pages.get(f"{host}{request.path}")
        if served is None:
            return serving.reply_text("There is nothing here.", status=404)
        if isinstance(served, str):
            return serving.reply_text(served, media_type="text/html")
        return served(request)

    @property
    def asked(self) -> list[str]:
        """Host, path and query of each request."""
        log = self.service.log if self.service else []
        return [_describe(request) for request in log]


def _describe(request: ReceivedRequest) -> str:
    host = request.headers["host"].partition(":")[0]
    pairs = [f"{name}={value}" for name, values in request.query.items() for value in values]
    return f"{host}{request.path}{'?' if pairs else ''}{'&'.join(pairs)}"


@dataclass
class CountedLookups:
    seen: list[tuple[str, Outcome]] = field(default_factory=list)

    def looked_up_in_web_cache(self, kind: str, outcome: Outcome) -> None:
        self.seen.append((kind, outcome))


@dataclass
class AgentWorld:
    """What a turn uses; each call of `ask` is a turn of its own, in the session of `entries`."""

    server: ScriptedModel
    model: LanguageModel
    engine: SearxngWorld
    engine_service: RunningService
    web: Web
    allowed: frozenset[str]
    index: MemoryIndex = field(default_factory=lambda: MemoryIndex(CORPUS))
    rules: WebRules = field(
        default_factory=lambda: WebRules(
            is_on=True, allowed_domains=(), blocked_domains=(), keeps_internal_names=True
        )
    )
    backups: tuple[StoredProvider, ...] = ()
    """Providers behind the search engine."""
    entries: CacheEntries = field(default_factory=TurnEntries)
    lookups: CountedLookups = field(default_factory=CountedLookups)
    state: ChatStateContainer = field(default_factory=ChatStateContainer)
    events: list[ChatEvent] = field(default_factory=list)

    def url(self, host: str, path: str) -> str:
        assert self.web.service is not None
        return f"http://{host}:{self.web.service.port}{path}"

    def put(self, host: str, path: str, content: str | Page) -> str:
        """Serve a page, and return its address."""
        self.web.pages[f"{host}{path}"] = content
        return self.url(host, path)

    @property
    def queries(self) -> list[str]:
        """What the search engine was asked."""
        return [str(self.engine.read_query(one)["text"]) for one in self.engine_service.log]

    @property
    def pages_asked(self) -> list[str]:
        return self.web.asked

    def results(self, request: int) -> list[str]:
        """What tools had told the model when it was asked so many times before."""
        return tool_results(self.server.requests[request])

    def found(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def searched(self) -> list[WebSearched]:
        return self.found(WebSearched)

    @property
    def read(self) -> list[PagesRead]:
        return self.found(PagesRead)

    def start(
        self, script: Sequence[Reply] | Callable[[Request], Reply], **turn: Any
    ) -> Iterator[ChatEvent]:
        self.server.play(script)
        self.state, self.events = ChatStateContainer(), []
        values: dict[str, Any] = {
            "message": "How much annual leave do people have?",
            "readers": ANN,
            "deadline": Deadline.after(30),
            "person_id": NOBODY,
            "mode": AgentMode(),
        }
        parts = turn.pop("parts", None) or self.parts()
        return run_llm_loop(ChatTurn(**(values | turn)), parts, self.state)

    def ask(
        self, script: Sequence[Reply] | Callable[[Request], Reply], **turn: Any
    ) -> AnswerDone | TurnFailed:
        """The last event."""
        for event in self.start(script, **turn):
            self.events.append(event)
        last = self.events[-1]
        assert isinstance(last, AnswerDone | TurnFailed)
        return last

    def parts(self, **others: Any) -> ChatDependencies:
        numbers = DocumentNumbers()
        tool = SearchTool(
            index=self.index,
            embedder=HashingEmbedder(),
            understanding=EVERYTHING,
            count_tokens=estimated_tokens,
            complete=None,
            numbers=numbers,
        )
        values: Mapping[str, Any] = {
            "model": self.model,
            "count_tokens": estimated_tokens,
            "search": tool,
            "numbers": numbers,
            "web": self.session(),
        }
        return ChatDependencies(**{**values, **others})

    def session(self) -> WebSession:
        web = self.web

        def resolve(host: str, port: int) -> list[str]:
            del port
            if host.rpartition(".")[2] != "test":
                raise OSError(f"{host} has no address")
            return [serving.LOOPBACK_ADDRESS]

        assert web.service is not None
        return WebSession(
            search=WebSearch(self._setup, self._open, lambda *_: None, Pacer()),
            pages=PageReader(PageFetcher(AllowedNetworks(hosts=self.allowed), resolve)),
            cache=SessionCache(self.entries, self.lookups),
            embedding=EmbedderWithLanguages(HashingEmbedder(), EVERYTHING),
        )

    def make_provider(
        self, number: int, name: str, world: ProviderWorld, service: RunningService
    ) -> StoredProvider:
        values = ProviderValues(
            name=name,
            kind=world.kind,
            settings=dict(world.settings(service.url)),
            sealed_credential=None,
            is_enabled=True,
            per_minute=10_000,
        )
        return StoredProvider(id=number, values=values, wait=None)

    def _setup(self) -> WebSearchSetup:
        desk = self.make_provider(1, "desk", self.engine, self.engine_service)
        return WebSearchSetup(rules=self.rules, providers=(desk, *self.backups))

    def _open(self, provider: StoredProvider) -> SearchProvider:
        values = provider.values
        credential = {"key": SECRET} if values.kind == TavilyWorld.kind else {}
        return create_provider(values.kind, values.name, values.settings, credential, fetch_html)


@contextmanager
def agent_world(*more_sites: str, window: int = 32_000) -> Iterator[AgentWorld]:
    """Serve everything for as long as the block lasts.

    Args:
        more_sites: names besides `SITES` that pages may be read of.
    """
    engine, web = SearxngWorld(), Web()
    engine.items = []
    with ExitStack() as stack:
        server = stack.enter_context(ScriptedModel())
        settings = ModelSettings(
            base_url=server.base_url, model="scripted", api_key="sk", context_window=window
        )
        model = LanguageModel(settings)
        stack.callback(model.close)
        engine_service = stack.enter_context(serve(engine))
        web.service = stack.enter_context(serve(web))
        allowed = frozenset({*SITES, *more_sites})
        yield AgentWorld(server, model, engine, engine_service, web, allowed)


def find_pages(
    world: AgentWorld, *paths: str, summary: str = "Leave is 20 days at least."
) -> list[str]:
    """Let the engine find these pages of news.test, and return their addresses."""
    urls = [world.url("news.test", path) for path in paths]
    world.engine.items = [Item(f"Page {at}", url, summary) for at, url in enumerate(urls, 1)]
    return urls


def pages_in(result: str) -> list[dict[str, Any]]:
    line = next(line for line in result.split("\n\n") if line.startswith('{"pages"'))
    listed: list[dict[str, Any]] = json.loads(line)["pages"]
    return listed


def is_framed(result: str, count: int) -> bool:
    announced = f"Found {count} relevant sources. Use [number] format to cite specific information."
    return result.startswith(f"{HOW_TO_CITE}\n{announced}\n") and result.endswith(CITATION_RULES)


def done(ended: AnswerDone | TurnFailed) -> AnswerDone:
    assert isinstance(ended, AnswerDone), ended
    return ended


def found_number(result: str, title: str) -> str:
    found = re.search(rf"^\[(\d+)\] {title}$", result, re.MULTILINE)
    assert found is not None
    return found[1]
