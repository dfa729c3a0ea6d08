"""Research over HTTP with the web: a home of a few documents, a search engine and the pages that it finds."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from backend.container import Container
from backend.web_search.page_fetcher import PageFetcher
from backend.web_search.page_reader import PageReader
from connectors.http_client.address_guard import AllowedNetworks
from tests.contract.provider_worlds.api_worlds import SearxngWorld
from tests.contract.provider_worlds.world import Item
from tests.support.agent_world import Page, Web, page
from tests.support.research_world import WEB_FACTS
from tests.support.scripted_model import ScriptedModel
from tests.support.services import serving
from tests.support.services.serving import serve
from tests.support.web_search import switch_on
from tests.unit.backend.api.conftest import connected, make_container

SITE = "news.test"
DOCUMENTS = {
    "price.md": "# The price list\n\nThe Aster pump costs 40 EUR.\n",
    "maker.md": "# Who makes what\n\nThe Aster pump is made by Blau AG.\n",
    "canteen.md": "# The canteen\n\nThe canteen opens at noon.\n",
}


@dataclass(frozen=True)
class ResearchWeb:
    container: Container
    model: ScriptedModel
    engine: SearxngWorld
    web: Web

    def put(self, path: str, content: str | Page) -> None:
        self.web.pages[f"{SITE}{path}"] = content

    def restore(self) -> None:
        """Have the engine and every page answer as they did at first."""
        assert self.web.service is not None
        self.engine.instead = None
        self.web.service.log.clear()
        for path, (title, said) in WEB_FACTS.items():
            self.put(path, page(title, f"<p>{said}</p>"))
        self.engine.items = [
            Item(
                title,
                f"http://{SITE}:{self.web.service.port}{path}",
                f"More about {path.strip('/')}.",
                "2026-02-03",
            )
            for path, (title, _) in WEB_FACTS.items()
        ]


@contextmanager
def research_web(folder: Path) -> Iterator[ResearchWeb]:
    """Run all of it below this folder."""
    documents = folder / "documents"
    documents.mkdir()
    for name, text in DOCUMENTS.items():
        (documents / name).write_text(text, encoding="utf-8")
    engine, web = SearxngWorld(), Web()
    with ExitStack() as stack:
        model = stack.enter_context(ScriptedModel())
        web.service = stack.enter_context(serve(web))
        running = stack.enter_context(serve(engine))
        container = make_container(folder / "home", llm_url=model.base_url, llm_model="scripted")
        allowed = AllowedNetworks(hosts=frozenset({SITE}))
        vars(container.web)["page_reader"] = PageReader(PageFetcher(allowed, _resolve))
        connected(container, documents)
        switch_on(container, running)
        world = ResearchWeb(container, model, engine, web)
        world.restore()
        yield world


def _resolve(host: str, port: int) -> list[str]:
    del port
    if host != SITE:
        raise OSError(f"{host} has no address")
    return [serving.LOOPBACK_ADDRESS]
