"""What a search by the Model Context Protocol costs beside `POST /api/search`, at 20,000 chunks on one connection each.

    .venv/bin/python -m tests.benchmarks.mcp_search [--chunks N] [--questions N]

Over different questions of natural language (`scale`), by turns: the tool `search` by the official client, in both forms of the
protocol, and the route by an HTTP client, of one `quarry serve`. What the clients themselves take is counted. Bar for the ratio of
the medians: 1.5. The command exits with 1 if it is missed.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles

import httpx2
from mcp import Client

from tests.benchmarks import scale
from tests.benchmarks.http_overhead import CHUNKS, QUESTIONS, WARM_UP, build_home
from tests.support.home import Home
from tests.support.mcp_clients import connect
from tests.support.serving import Serving, serving

BAR = 1.5
ROUTE = "POST /api/search"

Call = Callable[[str], Awaitable[object]]


async def measure(calls: dict[str, Call], questions: list[str]) -> dict[str, list[float]]:
    """Milliseconds of each call, in an order that rotates; those of the first questions are dropped."""
    names, times = list(calls), {name: list[float]() for name in calls}
    for number, question in enumerate(questions):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            began = time.perf_counter()
            await calls[name](question)
            times[name].append(1000 * (time.perf_counter() - began))
    return {name: spent[WARM_UP:] for name, spent in times.items()}


def make_call(client: Client) -> Call:
    async def search(question: str) -> None:
        found = await client.call_tool("search", {"query": question})
        assert not found.is_error

    return search


async def run(server: Serving, questions: list[str]) -> dict[str, list[float]]:
    token = server.authorization["Authorization"].removeprefix("Bearer ")
    async with (
        httpx2.AsyncClient(base_url=server.url, headers=server.authorization, timeout=60) as http,
        connect(server.url, token, "legacy") as legacy,
        connect(server.url, token, "auto") as modern,
    ):

        async def search(question: str) -> None:
            (await http.post("/api/search", json={"query": question})).raise_for_status()

        calls = {
            ROUTE: search,
            "MCP 2026-07-28": make_call(modern),
            "MCP with handshake": make_call(legacy),
        }
        return await measure(calls, questions)


def report(times: dict[str, list[float]]) -> bool:
    """Print a table; whether the bar is met."""
    base, met = median(times[ROUTE]), True
    for name, spent in times.items():
        ratio = median(spent) / base
        met = met and ratio <= BAR
        limit = "" if name == ROUTE else f"  bar {BAR}"
        p95 = quantiles(spent, n=20)[-1]
        print(f"{name:20} p50 {median(spent):6.2f} ms  p95 {p95:6.2f} ms  x{ratio:.2f}{limit}")
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    arguments = parser.parse_args()
    folder = scale.KEPT / f"http-{arguments.chunks}"
    build_home(folder, arguments.chunks)
    environment = {"QUARRY_HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}
    with serving(Home(folder), "--as", scale.READER, **environment) as running:
        times = asyncio.run(run(running, scale.questions(arguments.questions)))
    sys.exit(0 if report(times) else 1)


if __name__ == "__main__":
    main()
