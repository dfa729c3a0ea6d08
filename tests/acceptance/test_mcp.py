"""The official client of the Model Context Protocol over `quarry mcp`, and over `quarry serve` in two processes."""

import asyncio
import json
import signal
import subprocess
import time

import httpx2
import pytest
from mcp import Client, StdioServerParameters

from tests.support.home import QUARRY, Home
from tests.support.mcp_clients import Mode, Progress, connect, make_request, read_failure, read_text
from tests.support.server_processes import SERVERS, find_accepting, wait_for
from tests.support.serving import serving

LEAVE = "handbook:people/parental-leave.md"
BANDS = "handbook:finance/salary-bands-2026.xlsx"
QUESTION = "How long is parental leave?"
HIDDEN = "The document does not exist, or you may not read it."
BOTH = pytest.mark.parametrize("mode", ["legacy", "auto"])


def open_command(home: Home, mode: Mode, *arguments: str) -> Client:
    command = StdioServerParameters(
        command=str(QUARRY), args=["mcp", *arguments], env=home.environment()
    )
    return Client(command, mode=mode)


async def find(client: Client, query: str) -> list[str]:
    found = await client.call_tool("search", {"query": query})
    return [one["id"] for one in found.structured_content["results"]]


@BOTH
def test_an_agent_on_the_machine_searches_reads_and_asks(home: Home, mode: Mode) -> None:
    progress = Progress()

    async def run() -> None:
        async with open_command(home, mode) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert tools == {"search", "fetch", "ask", "research"}
            assert (await find(client, "parental leave"))[0] == LEAVE
            read = await client.call_tool("fetch", {"id": LEAVE})
            assert "Becoming a parent" in read.structured_content["text"]
            assert read.structured_content["url"].startswith("file:///")
            answer = await client.call_tool(
                "ask", {"question": QUESTION}, progress_callback=progress.note
            )
            assert LEAVE in [one["id"] for one in answer.structured_content["sources"]]
            assert BANDS not in await find(client, "salary bands")
            assert read_failure(await client.call_tool("fetch", {"id": BANDS})) == HIDDEN
            absent = await client.call_tool("fetch", {"id": "handbook:absent.md"})
            assert read_failure(absent) == HIDDEN

    asyncio.run(run())
    assert progress.messages[-1] == "Writing the answer"


def test_an_agent_acts_as_whom_it_is_started_for(home: Home) -> None:
    async def run() -> None:
        async with open_command(home, "auto", "--as", "group:finance") as client:
            assert BANDS in await find(client, "salary bands")
            read = await client.call_tool("fetch", {"id": BANDS})
            assert read.structured_content["id"] == BANDS

    asyncio.run(run())


def start(home: Home, *arguments: str, **settings: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(QUARRY), "mcp", *arguments],
        env=home.environment(**settings),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_standard_output_holds_messages_and_the_end_of_input_is_the_end(home: Home) -> None:
    start_message = make_request(
        "initialize",
        protocolVersion="2025-06-18",
        capabilities={},
        clientInfo={"name": "test", "version": "1"},
    )
    ask = make_request("tools/call", name="ask", arguments={"question": QUESTION}) | {"id": 2}
    lines = [
        json.dumps(start_message),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        "this is no message",
        json.dumps(ask),
    ]
    with start(home) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(lines) + "\n")
        process.stdin.flush()
        answers: dict[int, object] = {}
        while 2 not in answers:
            message = json.loads(process.stdout.readline())
            assert message["jsonrpc"] == "2.0"
            if "id" in message:
                answers[message["id"]] = message["result"]
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(30) == 0


@pytest.mark.parametrize("messages", [1, 500], ids=["while it waits", "while it answers"])
def test_ctrl_c_ends_it_soon(home: Home, messages: int) -> None:
    with start(home) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write((json.dumps(make_request("ping")) + "\n") * messages)
        process.stdin.flush()
        assert process.stdout.readline()
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 1
        assert time.monotonic() - began < 10
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "settings", "named"),
    [
        (["--as", "nobody"], {}, "nobody"),
        ([], {"QUARRY_SEARCH_SECONDS": "soon"}, "QUARRY_SEARCH_SECONDS"),
    ],
)
def test_what_is_wrong_with_the_command_is_said_outside_of_the_protocol(
    home: Home, arguments: list[str], settings: dict[str, str], named: str
) -> None:
    wrong = home.quarry("mcp", *arguments, **settings)
    assert (wrong.code, wrong.out) == (2, "")
    assert named in wrong.err


@BOTH
def test_two_processes_serve_one_connection(home: Home, mode: Mode) -> None:
    with serving(home, "--processes", "2") as server:
        wait_for(lambda: find_accepting(server) == set(SERVERS))
        token = server.authorization["Authorization"].removeprefix("Bearer ")

        async def run() -> None:
            # Each request over a connection of its own, which either process may accept.
            limits = httpx2.Limits(max_keepalive_connections=0)
            transport = httpx2.AsyncHTTPTransport(limits=limits)
            async with connect(server.url, token, mode, transport) as client:
                for _ in range(20):
                    assert (await find(client, "parental leave"))[0] == LEAVE
                answer = await client.call_tool("ask", {"question": QUESTION})
                assert LEAVE in read_text(answer)

        async def run_many() -> None:
            await asyncio.gather(*(run() for _ in range(4)))

        asyncio.run(run_many())
        lines = [json.loads(line) for line in server.log if '"/mcp"' in line]
        assert {line["process"] for line in lines} == set(SERVERS)
        assert {line["status"] for line in lines} <= {200, 202, 405}
