"""What processor time a search takes over its parts, at 20,000 chunks.

    .venv/bin/python -m tests.benchmarks.search_processor [--chunks N] [--rounds N]

Over different questions of natural language (`scale`), twenty at a time in turns: embedding the message once, embedding
it and one `find` of 10, a whole search in this process, and `POST /api/search` of a `quarry serve`, of which the
processor time of its process counts. Bars: the search over the `find` with its embedding 1.6, the API over embedding
once 3. The command exits with 1 if one is missed.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from backend.composition.chat import ChatService
from backend.search.retrieval import HYBRID_ALPHA
from connectors.batched import batched
from indexing.index.protocols import Found, IndexQuery
from indexing.runtime.deadline import Deadline
from tests.benchmarks import scale
from tests.benchmarks.http_overhead import READERS, build_home, search
from tests.support.home import Home
from tests.support.serving import Serving, serving

CHUNKS, QUESTIONS, AT_ONCE = 20_000, 200, 20
EMBED, FIND, SEARCH, API = "embed once", "embed and find 10", "search", "POST /api/search"
BARS = ((SEARCH, FIND, 1.6), (API, EMBED, 3.0))

Clock = Callable[[], float]
Call = Callable[[str], object]


def embed(chat: ChatService, question: str) -> object:
    return chat.engine.embedding.embedder.embed_queries([question], Deadline.after(60))


def embed_and_find(chat: ChatService, question: str) -> Found:
    [vector] = chat.engine.embedding.embedder.embed_queries([question], Deadline.after(60))
    query = IndexQuery(text=question, vector=vector, alpha=HYBRID_ALPHA, size=10)
    return chat.engine.index.find([query], READERS, Deadline.after(60))


def processor_of(served: Serving) -> float:
    """Seconds that the process has spent."""
    status = Path(f"/proc/{served.process.pid}/stat").read_text(encoding="utf-8")
    user, system = status.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measure(
    calls: dict[str, tuple[Call, Clock]], questions: Sequence[str], rounds: int
) -> dict[str, float]:
    """Median milliseconds a question; the first turn of each, which makes it warm, is dropped."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for some in batched(questions, AT_ONCE):
            for name, (call, clock) in calls.items():
                began = clock()
                for question in some:
                    call(question)
                spent[name].append(1000 * (clock() - began) / len(some))
    return {name: median(times[1:]) for name, times in spent.items()}


def report(times: dict[str, float]) -> bool:
    """Print the figures; whether all bars are met."""
    for name, milliseconds in times.items():
        print(f"{name:20} {milliseconds:6.2f} ms")
    ratios = [times[name] / times[base] for name, base, _ in BARS]
    for (name, base, bar), ratio in zip(BARS, ratios, strict=True):
        print(f"{name} over {base}: {ratio:.2f}, bar {bar}")
    return all(ratio <= bar for (_, _, bar), ratio in zip(BARS, ratios, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    folder = scale.KEPT / f"http-{arguments.chunks}"
    chat = build_home(folder, arguments.chunks).chat
    environment = {"QUARRY_HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}
    with serving(Home(folder), "--as", scale.READER, **environment) as served:

        def ask(question: str) -> None:
            served.client.post("/api/search", json={"query": question}).raise_for_status()

        calls: dict[str, tuple[Call, Clock]] = {
            EMBED: (lambda question: embed(chat, question), time.process_time),
            FIND: (lambda question: embed_and_find(chat, question), time.process_time),
            SEARCH: (lambda question: search(chat, question), time.process_time),
            API: (ask, lambda: processor_of(served)),
        }
        times = measure(calls, scale.questions(QUESTIONS), arguments.rounds)
    sys.exit(0 if report(times) else 1)


if __name__ == "__main__":
    main()
