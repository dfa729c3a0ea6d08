"""What a search over HTTP costs beyond the same search in process, at 20,000 chunks on one connection.

    .venv/bin/python -m tests.benchmarks.http_overhead [--chunks N] [--questions N]

Over different questions of natural language (`scale`): a search in this process, `POST /api/search` and
`GET /results` of a `quarry serve` on the same home, in an order that rotates from question to question. Bars for
the ratio of the medians to the search in process: 1.5 for the API, 2.2 for the page. The command exits with 1 if
one is missed.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

import httpx

from backend.composition.chat import ChatService
from backend.container import Container
from backend.search.query_syntax import parse_query
from backend.settings import Settings
from connectors.access import Readers
from indexing.index.protocols import Filters
from tests.benchmarks import scale
from tests.benchmarks.index_scale import Corpus
from tests.support.home import Home
from tests.support.models import MODEL_CACHE
from tests.support.serving import serving

CHUNKS, QUESTIONS, WARM_UP = 20_000, 200, 20
BARS = {"POST /api/search": 1.5, "GET /results": 2.2}
IN_PROCESS = "search in process"
READERS = Readers.of(scale.READER)

Call = Callable[[str], object]


def build_home(folder: Path, chunks: int) -> Container:
    """A home with an index of so many chunks; built if it is not there."""
    if not folder.is_dir():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        built = Container(Settings(home=unfinished, models=Path(MODEL_CACHE)))
        built.engine.writer.write(Corpus(chunks, words=scale.words_by_frequency()).documents())
        unfinished.rename(folder)
    return Container(Settings(home=folder, models=Path(MODEL_CACHE)))


def search(chat: ChatService, question: str) -> object:
    service = chat.search
    request = service.request(parse_query(question), READERS, Filters(), service.deadline())
    return service.find_sections(request, 10)


def measure(calls: dict[str, Call], questions: list[str]) -> dict[str, list[float]]:
    """Milliseconds of each call; those of the first questions are dropped."""
    names, times = list(calls), {name: list[float]() for name in calls}
    for number, question in enumerate(questions):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            began = time.perf_counter()
            calls[name](question)
            times[name].append(1000 * (time.perf_counter() - began))
    return {name: spent[WARM_UP:] for name, spent in times.items()}


def report(times: dict[str, list[float]]) -> bool:
    """Print a table; whether all bars are met."""
    base, met = median(times[IN_PROCESS]), True
    for name, spent in times.items():
        ratio, bar = median(spent) / base, BARS.get(name)
        met = met and (bar is None or ratio <= bar)
        limit = f"  bar {bar}" if bar else ""
        p95 = quantiles(spent, n=20)[-1]
        print(f"{name:20} p50 {median(spent):6.2f} ms  p95 {p95:6.2f} ms  x{ratio:.2f}{limit}")
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    arguments = parser.parse_args()
    folder = scale.KEPT / f"http-{arguments.chunks}"
    container = build_home(folder, arguments.chunks)
    environment = {"QUARRY_HOME": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}
    with serving(Home(folder), "--as", scale.READER, **environment) as running:
        client: httpx.Client = running.client
        calls: dict[str, Call] = {
            IN_PROCESS: lambda question: search(container.chat, question),
            "POST /api/search": lambda question: client.post(
                "/api/search", json={"query": question}
            ).raise_for_status(),
            "GET /results": lambda question: client.get(
                "/results", params={"q": question}
            ).raise_for_status(),
        }
        times = measure(calls, scale.questions(arguments.questions))
    sys.exit(0 if report(times) else 1)


if __name__ == "__main__":
    main()
