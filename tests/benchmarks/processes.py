"""The rate of searches with `quarry serve --processes 2` over that of one process, at 20,000 chunks.

    .venv/bin/python -m tests.benchmarks.processes [--chunks N] [--rounds N] [--seconds N] [--clients N]

Both servers run all the time, on the same home; clients with a connection each ask one, then the other, each as soon as it has
its answer. The ratio is the median over the rounds, of which the first is dropped. Wanted on two cores that do nothing
else: 1.5. Then the memory of each process is printed: what it has alone, and what lies in files that are mapped
once for all. The command exits with 1 if the bar is missed.
"""

import argparse
import json
import os
import re
import sys
import threading
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from tests.benchmarks import scale
from tests.benchmarks.http_overhead import build_home
from tests.support.home import Home
from tests.support.serving import Serving, serving

CHUNKS, QUESTIONS, BAR = 20_000, 200, 1.5


def ask_for(seconds: float, server: Serving, questions: list[str], answered: list[float]) -> None:
    """Ask question after question; the time of each answer is added."""
    end = time.monotonic() + seconds
    # Not httpx, which takes a tenth of the processor that is to be the servers'.
    headers = {"content-type": "application/json", **server.authorization}
    with closing(HTTPConnection(urlsplit(server.url).netloc, timeout=120)) as connection:
        for question in questions:
            if time.monotonic() >= end:
                return
            body = json.dumps({"query": question})
            connection.request("POST", "/api/search", body, headers)
            response = connection.getresponse()
            assert (response.status, bool(response.read())) == (200, True)
            answered.append(time.monotonic())


def rate(server: Serving, questions: list[str], options: argparse.Namespace) -> float:
    """Answers a second, to clients that each begin with another question."""
    answered: list[float] = []
    step = len(questions) // options.clients
    threads = [
        threading.Thread(
            target=ask_for,
            args=(options.seconds, server, (questions[at:] + questions[:at]) * 100, answered),
        )
        for at in range(0, step * options.clients, step)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(answered) / (max(answered) - began)


def servers_of(server: Serving) -> dict[str, int]:
    """The processes of a server by name, as its log has them."""
    found = re.findall(r'"message": "([a-z0-9 ]+): process (\d+)"', "".join(server.log))
    return {name: int(number) for name, number in found}


def tell_memory(name: str, process: int) -> None:
    """Print the memory of a process by its kind."""
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8")
    kilobytes = {key: int(size) for key, size in re.findall(r"(\w+): +(\d+) kB", rollup)}
    mapped = kilobytes["Rss"] - kilobytes["Anonymous"]
    print(
        f"{name:12} resident {kilobytes['Rss'] >> 10:4} MB, alone {kilobytes['Anonymous'] >> 10:4} MB,"
        f" in mapped files {mapped >> 10:4} MB, its share of all {kilobytes['Pss'] >> 10:4} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    folder, questions = scale.KEPT / f"http-{options.chunks}", scale.questions(QUESTIONS)
    build_home(folder, options.chunks)
    home = Home(folder)
    settings = {"QUARRY_HOME": str(folder)}
    reader = ("--as", scale.READER)
    with (
        serving(home, *reader, **settings) as one,
        serving(home, *reader, "--processes", "2", **settings) as two,
    ):
        ratios = []
        for number in range(options.rounds + 1):
            alone, together = (rate(each, questions, options) for each in (one, two))
            print(
                f"round {number}: one {alone:6.1f}, two {together:6.1f} a second,"
                f" x{together / alone:.2f}, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            ratios.append(together / alone)
        tell_memory("one", one.process.pid)
        for name, process in servers_of(two).items():
            tell_memory(name, process)
    ratio = median(ratios[1:])
    print(f"two processes over one: {ratio:.2f}, bar {BAR}")
    sys.exit(0 if ratio >= BAR else 1)


if __name__ == "__main__":
    main()
