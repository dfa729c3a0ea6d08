"""The open web as tests have it: a local engine that knows one page, which a home or a container asks."""

from collections.abc import Iterator
from contextlib import contextmanager

from backend.container import Container
from backend.store.audit import OWNER
from backend.web_search.service import RulesChange
from tests.contract.provider_worlds.api_worlds import SearxngWorld
from tests.contract.provider_worlds.world import Item
from tests.support.home import Home
from tests.support.services.serving import ReceivedRequest, RunningService, serve

LAW = Item(
    "Parental leave law",
    "https://law.example.com/leave",
    "By law each parent has 24 weeks of leave.",
    "2026-03-02",
)


@contextmanager
def serve_engine(*items: Item) -> Iterator[RunningService]:
    """Run an engine that finds these pages whatever it is asked; without any, the page of the law."""
    world = SearxngWorld()
    world.items = items or (LAW,)
    with serve(world) as running:
        yield running


def list_queries(engine: RunningService) -> list[str]:
    """Return what the engine was asked."""
    return [_read_query(request) for request in engine.log]


def _read_query(request: ReceivedRequest) -> str:
    return request.param("q")


def switch_on(container: Container, engine: RunningService) -> None:
    service = container.web.service(OWNER)
    service.add("searxng", {"api_url": engine.url, "private_hosts": ["127.0.0.1"]})
    service.change_rules(RulesChange(is_on=True))


def switch_on_in_home(home: Home, engine: RunningService) -> None:
    local = (engine.url, "--private-hosts", "127.0.0.1")
    for arguments in (("providers", "add", "searxng", *local), ("on",)):
        done = home.quarry("web", *arguments)
        assert done.code == 0, done.err
