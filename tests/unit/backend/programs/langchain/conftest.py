"""A home with documents, some of them of one person, and a provider of web search; nothing leaves this machine."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from backend.container import Container
from backend.programs.langchain import OpenedHome, open_home
from backend.settings import Settings
from backend.store.audit import OWNER
from backend.store.sync import sources
from backend.sync.foreground_run import sync
from backend.web_search.service import RulesChange, WebSearchService
from tests.contract.provider_worlds.api_worlds import TavilyWorld
from tests.contract.provider_worlds.world import SECRET
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.services.serving import RunningService, serve

ANN = "user:ann@example.com"
BOB = "user:bob@example.com"
DOCUMENTS = {
    "leave.md": "# Leave\n\nThere are twenty days of paid leave. Leave is asked for in the portal.\n",
    "sick-leave.md": "# Sick leave\n\nWho takes sick leave tells the team on the same day.\n",
    "parental-leave.md": "# Parental leave\n\nParental leave is fourteen weeks of paid leave.\n",
    "travel.md": "# Travel\n\nTrains are booked in second class.\n",
    "ann/project.md": "---\nauthor: Gerda Krummholz\ntags: [HB-2290]\n---\n# Project QX-4471\n\nThe budget of Project QX-4471 is 4,711 euros.\n",
}
ACCESS = {
    "rules": [
        {"match": "ann/**", "readers": [ANN, "group:finance"]},
        {"match": "**", "readers": ["public"]},
    ]
}


@dataclass(frozen=True)
class Company:
    settings: Settings
    container: Container
    embedding: EmbeddingServer
    engine: TavilyWorld
    """What the provider of web search answers."""
    web_server: RunningService

    @property
    def web(self) -> WebSearchService:
        return self.container.web.service(OWNER)

    @property
    def web_queries(self) -> list[str]:
        """What was sent to the provider."""
        return [str(request.json()["query"]) for request in self.web_server.log]


@contextmanager
def open_company(folder: Path) -> Iterator[Company]:
    for name, text in DOCUMENTS.items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "docs" / "access.yaml").write_text(json.dumps(ACCESS), encoding="utf-8")
    engine = TavilyWorld()
    with embedding_server() as embedding, serve(engine) as web_server:
        settings = Settings(home=folder / "home", embedding_url=embedding.url)
        container = Container(settings)
        source = sources.add(container.database, "docs", "folder", {"path": str(folder / "docs")})
        parts = container.sources
        connector, pipeline = parts.connector(source), parts.pipeline(source)
        assert list(sync(container.database, source, connector, pipeline))
        company = Company(settings, container, embedding, engine, web_server)
        company.web.add("tavily", engine.settings(web_server.url), {"key": SECRET}, "desk")
        company.web.change_rules(RulesChange(is_on=True))
        yield company
        container.close()


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Company]:
    with open_company(tmp_path) as opened:
        yield opened


@pytest.fixture
def anns_home(company: Company) -> Iterator[OpenedHome]:
    with open_home(ANN, settings=company.settings) as home:
        yield home


@pytest.fixture
def bobs_home(company: Company) -> Iterator[OpenedHome]:
    with open_home(BOB, settings=company.settings) as home:
        yield home


@pytest.fixture
def anyio_backend() -> str:
    """Runs tests that are coroutines by asyncio."""
    return "asyncio"
