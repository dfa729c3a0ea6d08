"""What `quarry mcp` serves, by the official client in the same process."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
from mcp import Client
from mcp_types import CallToolResult

from backend.cli.local_research_workers import OWNER, LocalResearchWorkers
from backend.cli.mcp import HomeAsker
from backend.composition.research import NO_MODEL
from backend.container import Container
from backend.programs.home_container import HomeContainer
from backend.programs.mcp import documents
from backend.programs.mcp.asker import DocumentAccess
from backend.programs.mcp.server import make_server
from backend.schemas.mcp_tool import FoundDocument, FoundDocuments, SearchArguments
from backend.store.research import research_runs
from connectors.access import Readers
from indexing.index.versions import IndexVersionReplacedError
from tests.support.knowledge import forget_findings
from tests.support.mcp_clients import Mode, find_refusal, read_failure, read_text
from tests.support.research_server import HeldModel
from tests.support.research_world import ResearchModel
from tests.support.scripted_model import Say, ScriptedModel
from tests.unit.backend.api.conftest import SOURCE, connected, make_container, write_files

LEAVE, PAY = f"{SOURCE}:leave.md", f"{SOURCE}:finance/pay.md"
SOON = 30.0
Found = TypeVar("Found")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("home")
    (path / "files").mkdir()
    write_files(path / "files")
    connected(make_container(path), path / "files")
    return path


@pytest.fixture
def container(path: Path) -> Container:
    """Not opened yet; the server closes it."""
    return make_container(path)


def use(
    container: Container,
    work: Callable[[Client], Awaitable[Found]],
    tokens: list[str] | None = None,
    mode: Mode = "legacy",
) -> Found:
    async def run(home: HomeContainer) -> Found:
        with closing(LocalResearchWorkers(home)) as runs:
            asker = HomeAsker(home, tokens, runs)
            async with Client(make_server(lambda _: asker), mode=mode) as client:
                return await work(client)

    own = Readers.of(*tokens) if tokens else None
    with closing(HomeContainer(container, own)) as home:
        return asyncio.run(run(home))


def test_who_is_named_is_shown_what_they_may_read(path: Path) -> None:
    async def look(client: Client) -> tuple[bool, bool, set[str]]:
        found = await client.call_tool("search", {"query": "senior engineer salary band"})
        read = await client.call_tool("fetch", {"id": PAY})
        listed = (await client.list_resources()).resources
        return PAY in read_text(found), not read.is_error, {one.name for one in listed}

    *shown, every = use(make_container(path), look, ["group:finance"])
    assert shown == [True, True]
    assert PAY in every
    *hidden, rest = use(make_container(path), look)
    assert hidden == [False, False]
    assert rest == every - {PAY}


def test_links_of_files_are_their_own_and_other_documents_are_resources(
    container: Container,
) -> None:
    home = HomeContainer(container, None)
    asker = HomeAsker(home, None, LocalResearchWorkers(home))
    assert asker.find_url("wiki:a b.md", "file:///a", "document") == "file:///a"
    assert asker.find_url("wiki:a/b.md", "", "document") == "quarry://documents/wiki%3Aa%2Fb.md"
    container.close()


def test_the_model_answers_with_what_the_asker_may_read(path: Path) -> None:
    def write(_: object) -> Say:
        return Say("Parents have 26 weeks [1].")

    async def ask(client: Client) -> object:
        asked = {"question": "How long is parental leave?"}
        return (await client.call_tool("ask", asked)).structured_content

    with ScriptedModel(write) as model:
        container = make_container(path, llm_url=model.base_url, llm_model="scripted")
        answer = use(container, ask)
        assert model.requests
        assert all("band five" not in request.text for request in model.requests)
    assert isinstance(answer, dict)
    assert (answer["answer"], answer["answered"]) == ("Parents have 26 weeks [1].", True)
    assert [one["id"] for one in answer["sources"]] == [LEAVE]


QUESTION = "How many weeks of paid leave do parents have?"
BAND = "In which band is a senior engineer?"


async def research(client: Client) -> CallToolResult:
    return await client.call_tool("research", {"question": f"{QUESTION}; {BAND}"})


def test_research_is_worked_on_in_this_process_within_the_askers_rights(path: Path) -> None:
    with ScriptedModel(ResearchModel()) as model:
        scripted = {"llm_url": model.base_url, "llm_model": "scripted"}
        hidden = use(make_container(path, **scripted), research)
        assert model.requests
        assert all("band five" not in request.text for request in model.requests)
        forget_findings(make_container(path).database)
        shown = use(make_container(path, **scripted), research, ["group:finance"])
    assert [one["id"] for one in hidden.structured_content["sources"]] == [LEAVE]
    assert "26 weeks of paid leave [1]" in hidden.structured_content["report"]
    assert {one["id"] for one in shown.structured_content["sources"]} == {LEAVE, PAY}
    assert hidden.structured_content["url"].startswith("/api/research/")


def test_research_that_is_not_done_is_given_back_as_the_process_ends(path: Path) -> None:
    model = HeldModel()
    model.hold("next_tasks")

    async def leave(client: Client) -> None:
        call = asyncio.create_task(research(client))
        assert await asyncio.to_thread(model.held.wait, SOON)
        call.cancel()
        asyncio.get_running_loop().call_later(0.3, model.release)
        await asyncio.sleep(0.1)

    with ScriptedModel(model) as server:
        use(make_container(path, llm_url=server.base_url, llm_model="scripted"), leave)
    container = make_container(path)
    (last, *_) = research_runs.list_page(container.database, OWNER, None, None, 1)
    assert (last.state, last.tasks_done) == ("waiting", 2)
    research_runs.remove(container.database, OWNER, last.id)
    container.close()


def test_research_without_a_model_says_why(container: Container) -> None:
    assert read_failure(use(container, research)) == NO_MODEL


def test_an_index_that_was_replaced_is_opened_anew(
    container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[DocumentAccess] = []
    reopened: list[HomeContainer] = []

    def search(access: DocumentAccess, asked: SearchArguments) -> FoundDocuments:
        del asked
        seen.append(access)
        if len(seen) == 1:
            raise IndexVersionReplacedError(None)
        return FoundDocuments(results=(FoundDocument(id=LEAVE, title="", url=""),))

    def reopen(home: HomeContainer) -> None:
        reopened.append(home)

    monkeypatch.setattr(documents, "search_documents", search)
    monkeypatch.setattr(HomeContainer, "reopen", reopen)
    found = use(container, lambda client: client.call_tool("search", {"query": "leave"}))
    assert LEAVE in read_text(found)
    assert (len(seen), len(reopened)) == (2, 1)


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Set once a search has begun, and once its deadline has ended."""
    began, over = threading.Event(), threading.Event()

    def search(access: DocumentAccess, asked: SearchArguments) -> FoundDocuments:
        del asked
        began.set()
        while access.deadline.remaining():
            time.sleep(0.01)
        over.set()
        return FoundDocuments(results=())

    monkeypatch.setattr(documents, "search_documents", search)
    yield began, over
    assert over.wait(SOON)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_call_that_is_cancelled_ends_its_work(
    container: Container, ended: tuple[threading.Event, threading.Event], mode: Mode
) -> None:
    began, over = ended

    async def cancel(client: Client) -> bool:
        asked = asyncio.create_task(client.call_tool("search", {"query": "leave"}))
        await asyncio.to_thread(began.wait, SOON)
        asked.cancel()
        return await asyncio.to_thread(over.wait, SOON)

    assert use(container, cancel, mode=mode)


def test_time_that_is_over_is_told_to_the_model(path: Path) -> None:
    container = make_container(path, search_seconds=0.000001)
    found = use(container, lambda client: client.call_tool("search", {"query": "leave"}))
    assert read_failure(found).startswith("The search did not end in time.")


def test_a_home_that_was_closed_says_so(container: Container) -> None:
    home = HomeContainer(container, None)
    home.close()

    async def look() -> str:
        asker = HomeAsker(home, None, LocalResearchWorkers(home))
        async with Client(make_server(lambda _: asker)) as client:
            refused = await find_refusal(client.read_resource(f"quarry://documents/{LEAVE}"))
            return refused.message

    assert "was closed" in asyncio.run(look())
