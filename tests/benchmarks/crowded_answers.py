"""What searches and a second asker wait while one asker has a crowd of answers under way.

    .venv/bin/python -m tests.benchmarks.crowded_answers [--answers N] [--at-once N] [--model]

A real `quarry serve` on the handbook. First searches and answers are timed alone; then the owner asks N questions at once, and until
the last of them has ended, searches run one after the other and a second asker, a token, asks one question. Without `--model`
answers are extractive, which takes most of the processor; with it the language model is the scripted one of the tests.
"""

import argparse
import asyncio
import json
import os
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import httpx

from backend.sample import handbook
from tests.benchmarks.load import QUESTIONS, model_says
from tests.support.home import Home
from tests.support.scripted_model import ScriptedModel
from tests.support.serving import Serving, serving

ALONE = 30


@dataclass(frozen=True)
class Crowd:
    """How the answers of the crowd went."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    """Of those that were answered, to their end."""
    ended: threading.Event = field(default_factory=threading.Event)


def answer(client: httpx.Client, question: str) -> float:
    """Return the seconds to the end of an answer; asked again as often as the server is busy."""
    began = time.perf_counter()
    while (response := client.post("/api/ask", json={"question": question})).status_code == 503:
        time.sleep(float(response.headers["Retry-After"]))
    assert response.status_code == 200, response.text
    return time.perf_counter() - began


def search(client: httpx.Client, question: str) -> float:
    """Return the seconds of a search."""
    began = time.perf_counter()
    response = client.post("/api/search", json={"query": question})
    assert response.status_code == 200, response.text
    return time.perf_counter() - began


async def _ask(server: Serving, question: str, crowd: Crowd) -> None:
    """Over a plain socket: a client library would take the processor from the server."""
    address = urlsplit(server.url)
    body = json.dumps({"question": question}).encode()
    head = (
        f"POST /api/ask HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"Authorization: {server.authorization['Authorization']}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(head.encode() + body)
    status = int((await reader.readline()).split()[1])
    crowd.statuses[status] += 1
    while await reader.read(65_536):
        pass
    if status == 200:
        crowd.seconds.append(time.perf_counter() - began)
    writer.close()


async def _ask_at_once(server: Serving, questions: list[str], crowd: Crowd) -> None:
    await asyncio.gather(*(_ask(server, question, crowd) for question in questions))


def crowd_in(server: Serving, questions: list[str]) -> Crowd:
    """Begin all answers in a thread."""
    crowd = Crowd()

    def run() -> None:
        asyncio.run(_ask_at_once(server, questions, crowd))
        crowd.ended.set()

    threading.Thread(target=run, daemon=True).start()
    return crowd


def spread(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    late = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"p50 {median(ordered) * 1e3:.0f} ms, p95 {late * 1e3:.0f} ms, slowest {ordered[-1] * 1e3:.0f} ms (n={len(ordered)})"


def measure(server: Serving, questions: list[str], token: str, answers: int) -> None:
    owner, authorization = server.client, {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server.url, timeout=300, headers=authorization) as other:
        for question in questions[:ALONE]:
            search(owner, question)
        print("searches alone:", spread([search(owner, each) for each in questions[:ALONE]]))
        print("answers alone:", spread([answer(other, each) for each in questions[:5]]))
        crowd = crowd_in(server, (questions * answers)[:answers])
        time.sleep(0.5)
        second: list[float] = []
        asking = threading.Thread(target=lambda: second.append(answer(other, questions[0])))
        asking.start()
        found: list[float] = []
        while not crowd.ended.is_set():
            found.append(search(owner, questions[len(found) % len(questions)]))
        asking.join()
    print(f"searches while {answers} answers run:", spread(found))
    print(f"an answer to another asker meanwhile: {second[0]:.2f} s")
    print(f"the answers, by status {dict(crowd.statuses)}:", spread(crowd.seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--at-once", type=int, help="QUARRY_ANSWERS_AT_ONCE")
    options = parser.parse_args()
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        home = Home(Path(name))
        for command in (("add", "folder", str(handbook())), ("sync",)):
            assert home.quarry(*command).code == 0
        made = home.quarry("tokens", "create", "other", "--scope", "ask")
        settings = {"QUARRY_ANSWERS_AT_ONCE": str(options.at_once or "")}
        if options.model:
            model = opened.enter_context(ScriptedModel(model_says))
            settings |= {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
        server = opened.enter_context(serving(home, **settings))
        print(f"load {os.getloadavg()[0]:.1f}")
        measure(server, questions, made.out.strip(), options.answers)


if __name__ == "__main__":
    main()
