"""The way to the server over HTTP: the server is loaded with the first request, in each start of an application."""

import json
import subprocess
import sys
from typing import TYPE_CHECKING, cast

import httpx
import pytest
from anyio import create_task_group

from backend.programs.mcp.asker import McpAsker
from backend.programs.mcp.http_transport import HttpTransport
from tests.support.mcp_clients import RAW_HEADERS, make_request

if TYPE_CHECKING:
    from backend.programs.mcp.server import Context

MOST_BYTES = 10_000


class Reader:
    """Who may search, and nothing else."""

    may_ask = may_research = False


def find_reader(context: "Context") -> McpAsker:
    del context
    return cast(McpAsker, Reader())


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def transport() -> HttpTransport:
    return HttpTransport(find_reader, MOST_BYTES)


async def list_tools(transport: HttpTransport) -> list[str]:
    host = httpx.ASGITransport(transport.answer)
    async with httpx.AsyncClient(transport=host, base_url="http://127.0.0.1") as client:
        answer = await client.post("/mcp", json=make_request("tools/list"), headers=RAW_HEADERS)
    (message,) = (line for line in answer.text.splitlines() if line.startswith("data: {"))
    return [tool["name"] for tool in json.loads(message[6:])["result"]["tools"]]


@pytest.mark.soak("slow")
def test_an_api_that_no_agent_asks_does_not_load_the_protocol() -> None:
    program = "import sys, backend.api.app; print({'mcp', 'mcp_types'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("set()\n", "")


@pytest.mark.anyio
async def test_requests_are_answered_in_each_run_and_at_once(transport: HttpTransport) -> None:
    found: list[list[str]] = []

    async def ask() -> None:
        found.append(await list_tools(transport))

    for _ in range(2):
        async with transport.run(), create_task_group() as asking:
            for _ in range(3):
                asking.start_soon(ask)
    assert found == [["search", "fetch"]] * 6


@pytest.mark.anyio
async def test_outside_of_a_run_none_is_answered(transport: HttpTransport) -> None:
    async with transport.run():
        await list_tools(transport)
    with pytest.raises(ValueError, match="while the transport runs"):
        await list_tools(transport)
