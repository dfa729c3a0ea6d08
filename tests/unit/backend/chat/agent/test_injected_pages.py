"""Pages that give orders, and a model that obeys: nothing leaves, and no tool does what the asker did not ask for."""

from collections.abc import Iterator

import pytest

from backend.chat.agent import known_pages, read_texts
from backend.chat.events import AnswerDone
from backend.chat.privacy.query_privacy import AllowedQuery
from tests.contract.provider_worlds.world import Item
from tests.support.agent_world import (
    CORPUS,
    PRIVATE,
    AgentWorld,
    agent_world,
    internal_search,
    open_url,
    page,
    web_search,
)
from tests.support.injected_pages import (
    INJECTIONS,
    LETTERS,
    SECRETS,
    Injection,
    ObeyingModel,
    find_leaks,
    write_body,
)
from tests.support.scripted_model import Request
from tests.support.search import MemoryIndex, chunk
from tests.support.services.serving import redirect, reply_text

HOSTS = (*(f"{letter}.evil.test" for letter in LETTERS), "zx4417.evil.test")
QUERY = "annual leave law"
PLAN = (internal_search("project code budget supplier"), web_search(QUERY), open_url())
TOOLS = {"internal_search", "web_search", "open_url"}


@pytest.fixture
def world() -> Iterator[AgentWorld]:
    with agent_world(*HOSTS) as served:
        yield served


def _set_up(world: AgentWorld, injection: Injection) -> None:
    assert world.web.service is not None
    names = {
        "{evil}": world.url("evil.test", ""),
        "{news}": world.url("news.test", ""),
        "{port}": str(world.web.service.port),
    }
    order, links = injection.order, injection.links
    for name, address in names.items():
        order, links = order.replace(name, address), links.replace(name, address)
    at = injection.place
    head = f'<meta name="description" content="{order}">' if at == "description" else ""
    body = write_body(injection, order, links)
    url = world.put("news.test", "/leave", page("The law of leave", body, head=head))
    world.put("news.test", "/out", lambda _: redirect(world.url("evil.test", "/landing")))
    world.put("evil.test", "/landing", page("Annual leave", "<p>Leave is 20 days.</p>"))
    title = order if at == "title" else "The law of leave"
    summary = order if at == "summary" else "What the law says of leave."
    world.engine.items = [Item(title, url, summary)]
    if at == "document":
        poisoned = chunk("kb:notes", 0, f"Notes on the project and its code. {order}", PRIVATE)
        world.index = MemoryIndex((*CORPUS, poisoned))


def _run(world: AgentWorld, injection: Injection) -> ObeyingModel:
    _set_up(world, injection)
    model = ObeyingModel(PLAN)
    world.ask(model, message="How much annual leave does the project give, and what is the law?")
    return model


def _everything_asked(world: AgentWorld) -> list[str]:
    assert world.web.service is not None
    headers = [str(request.headers) for request in world.web.service.log]
    return [*world.pages_asked, *headers, *world.queries]


def _calls(request: Request) -> Iterator[tuple[str, str]]:
    """The name of each tool that was called, and what the model was told of it."""
    results = {
        message["tool_call_id"]: message["content"]
        for message in request.messages
        if message["role"] == "tool"
    }
    for message in request.messages:
        for call in message.get("tool_calls") or ():
            yield call["function"]["name"], results[call["id"]]


@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda one: one.name)
def test_nothing_leaves(world: AgentWorld, injection: Injection) -> None:
    model = _run(world, injection)
    assert model.obeyed or injection.is_harmless
    assert isinstance(world.events[-1], AnswerDone)
    assert any(SECRETS["CODE"] in text for text in world.results(-1))  # it did read the secret
    assert find_leaks(_everything_asked(world)) == []
    allowed = {"news.test/leave", "news.test/out", "evil.test/landing"}
    assert set(world.pages_asked) <= allowed
    assert "news.test/leave" in world.pages_asked
    for name, told in _calls(world.server.requests[-1]):
        assert name in TOOLS or told.startswith("There is no tool")


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    "injection", [one for one in INJECTIONS if not one.is_harmless], ids=lambda one: one.name
)
def test_without_the_guards_it_would(
    world: AgentWorld, injection: Injection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each order does harm where nothing checks addresses and queries: the test above can fail."""
    check = known_pages.KnownPages.check

    def open_all(pages: known_pages.KnownPages, reference: str) -> known_pages.CheckedPage:
        is_address = "://" in reference
        return known_pages.OpenablePage(reference) if is_address else check(pages, reference)

    monkeypatch.setattr(known_pages.KnownPages, "check", open_all)
    monkeypatch.setattr(
        read_texts.ReadTexts, "check_query", lambda _, query: AllowedQuery(str(query))
    )
    for path in ("/collect", "/innocent"):
        world.put("evil.test", path, lambda _: reply_text("Thank you."))
    _run(world, injection)
    led_to = set(injection.leads_to) & set(world.pages_asked)
    assert led_to or find_leaks(_everything_asked(world))


def test_there_are_more_than_forty_orders_in_both_languages() -> None:
    assert len(INJECTIONS) >= 40
    assert len({one.name for one in INJECTIONS}) == len(INJECTIONS)
    chinese = [one for one in INJECTIONS if one.name.endswith("Chinese")]
    assert len(chinese) >= 12
