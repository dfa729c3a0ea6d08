"""An agent of a fake model that calls both tools at once and answers from what they return; and many calls at once."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool

from backend.programs.bounded_work import run_bounded
from backend.programs.document_search import DocumentSearch
from backend.programs.langchain import OpenedHome, ToolSession
from backend.web_search.search import WebSearch
from connectors.access import Readers
from indexing.runtime.deadline import Deadline
from tests.contract.provider_worlds.world import ITEMS
from tests.unit.backend.programs.langchain.conftest import DOCUMENTS
from tests.unit.backend.programs.langchain.test_tools import call, documents_of, pages_of

PATIENCE = 20.0
CALLS = [
    {"name": "internal_search", "args": {"queries": ["paid leave"]}, "id": "1"},
    {"name": "web_search", "args": {"query": "parental leave law"}, "id": "2"},
]


def both_at_once(home: OpenedHome) -> Sequence[BaseTool]:
    """Return tools each of which goes on only once the other was called too."""
    meeting = threading.Barrier(2)
    internal, web = home.make_tools(ToolSession())
    search, open_web = internal.search, web.open_web

    def find_readers() -> Readers:
        meeting.wait(PATIENCE)
        return search.find_readers()

    def open_later() -> WebSearch:
        meeting.wait(PATIENCE)
        return open_web()

    waiting = DocumentSearch(search.open_service, search.reopen, find_readers)
    return (
        internal.model_copy(update={"search": waiting}),
        web.model_copy(update={"open_web": open_later}),
    )


def write_script(messages: Sequence[BaseMessage]) -> Iterator[AIMessage | str]:
    """Yield the calls, and then an answer that cites the first source of each tool by its number."""
    yield AIMessage(content="", tool_calls=CALLS)
    internal, web = [one for one in messages if isinstance(one, ToolMessage)]
    document, page = internal.artifact[0], web.artifact[0]
    yield f"{document['title']} [{document['number']}]. {page['title']} [{page['number']}]."


def check_answer(messages: Sequence[BaseMessage]) -> None:
    _, _, internal, web, answer = messages
    documents, pages = documents_of(internal.text), pages_of(web.text)
    first = min(documents, key=lambda title: documents[title])
    cited = f"{first} [{documents[first]}]. {ITEMS[0].title} [{pages[ITEMS[0].title]}]."
    assert answer.text == cited
    assert set(documents.values()).isdisjoint(pages.values())


def test_an_agent_calls_both_tools_at_once_and_cites_by_number(anns_home: OpenedHome) -> None:
    messages: list[BaseMessage] = [HumanMessage("How much parental leave is there?")]
    model = GenericFakeChatModel(messages=write_script(messages))
    tools = {tool.name: tool for tool in both_at_once(anns_home)}
    while not messages[1:] or isinstance(messages[-1], ToolMessage):
        said = model.invoke(messages)
        messages.append(said)
        with ThreadPoolExecutor() as threads:
            messages += threads.map(lambda each: tools[each["name"]].invoke(each), said.tool_calls)
    check_answer(messages)


@pytest.mark.anyio
async def test_an_asynchronous_agent_does_so_too(anns_home: OpenedHome) -> None:
    messages: list[BaseMessage] = [HumanMessage("How much parental leave is there?")]
    model = GenericFakeChatModel(messages=write_script(messages))
    tools = {tool.name: tool for tool in both_at_once(anns_home)}
    while not messages[1:] or isinstance(messages[-1], ToolMessage):
        said = await model.ainvoke(messages)
        messages.append(said)
        calls = [tools[each["name"]].ainvoke(each) for each in said.tool_calls]
        messages += await asyncio.gather(*calls)
    check_answer(messages)


QUERIES = [
    "paid leave",
    "sick leave",
    "second class trains",
    "budget of Project QX-4471",
    "leave in the portal",
]


def check_numbers(shown: Sequence[dict[str, Any]]) -> None:
    """Each source has one number, and each number one source."""
    by_link = {one["link"]: one["number"] for one in shown}
    assert {(one["link"], one["number"]) for one in shown} == set(by_link.items())
    assert sorted(by_link.values()) == list(range(1, len(by_link) + 1))
    assert len(by_link) == len(DOCUMENTS) + len(ITEMS)


def test_twenty_threads_use_the_tools_of_one_conversation(anns_home: OpenedHome) -> None:
    internal, web = anns_home.make_tools(ToolSession())
    begin = threading.Barrier(20)

    def work(number: int) -> list[dict[str, Any]]:
        begin.wait(PATIENCE)
        if number % 4 == 0:
            return list(call(web, query=f"leave {number}").artifact)
        return list(call(internal, queries=[QUERIES[number % len(QUERIES)]]).artifact)

    with ThreadPoolExecutor(20) as threads:
        check_numbers([one for shown in threads.map(work, range(20)) for one in shown])


@pytest.mark.anyio
async def test_twenty_tasks_use_the_tools_and_the_retriever(anns_home: OpenedHome) -> None:
    internal, web = anns_home.make_tools(ToolSession())
    retriever = anns_home.make_retriever(3)

    async def work(number: int) -> list[dict[str, Any]]:
        use, arguments = internal.ainvoke, {"queries": QUERIES[number % len(QUERIES)]}
        if number % 4 == 0:
            use, arguments = web.ainvoke, {"query": f"leave {number}"}
        name = web.name if number % 4 == 0 else internal.name
        message = await use({"type": "tool_call", "id": "1", "name": name, "args": arguments})
        return list(message.artifact)

    shown, retrieved = await asyncio.gather(
        asyncio.gather(*map(work, range(20))),
        asyncio.gather(*(retriever.ainvoke(query) for query in QUERIES * 2)),
    )
    check_numbers([one for each in shown for one in each])
    assert [one[0].metadata["title"] for one in retrieved[2:4]] == ["Travel", "Project QX-4471"]
    assert retrieved[:5] == retrieved[5:]


@pytest.mark.anyio
async def test_the_time_of_a_search_ends_with_its_task() -> None:
    begun, go_on = asyncio.Event(), threading.Event()
    loop, left = asyncio.get_running_loop(), Queue[float]()

    def search(deadline: Deadline) -> None:
        left.put(deadline.remaining())
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(PATIENCE)
        left.put(deadline.remaining())

    task = asyncio.create_task(run_bounded(search, Deadline.after(60)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert left.get(timeout=PATIENCE) > 50
    assert left.get(timeout=PATIENCE) == 0
