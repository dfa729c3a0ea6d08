"""How long an asker waits for first results and for the answer, with a language model that takes a second a call.

    .venv/bin/python -m tests.benchmarks.first_token [--delay SECONDS] [--questions N]

`quarry serve` on the sample handbook, a scripted model behind its real protocol, and `POST /api/ask` as a client
reads it. Each call of the model is answered after the delay, at once and whole. A question is planned, searched, selected
from and answered with a citation; a greeting is answered at once. Bars with a delay of one second:
first results < 0.2 s, first token of an answer <= 3.2 s, at most 6 calls, a greeting in one round (<= 1.2 s).
The command exits with 1 if one is missed.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx

from backend.sample import handbook
from tests.support.home import Home
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.serving import events, serving

QUESTIONS = (
    "What should a customer do when the scanner shows QX-4031?",
    "How long is the warranty on a used scanner?",
    "How many weeks of paid parental leave are there?",
    "Who may book first class on a train journey?",
    "How is a lost badge reported?",
)
GREETING = "Hi"
FIRST_RESULTS, FIRST_TOKEN, ONE_ROUND, MOST_CALLS = 0.2, 3.2, 1.2, 6


@dataclass(frozen=True)
class Waited:
    """Seconds from the request to an event, and the calls of the model."""

    first_results: float
    """0 where nothing is searched."""
    first_token: float
    done: float
    calls: int
    citations: int


def build_home(folder: Path) -> Home:
    shutil.copytree(handbook(), folder / "handbook")
    home = Home(folder)
    assert home.quarry("add", "folder", str(folder / "handbook")).code == 0
    assert home.quarry("sync").code == 0
    return home


def reply(request: Request) -> Reply:
    """Search once for a question, then answer from the first document; greet who greets."""
    if request.answers and request.sources:
        first = request.sources[0]
        return Say(f"{first['content'].splitlines()[-1].split('.')[0]} [{first['number']}].")
    if request.answers:
        return Say("Hello. What would you like to know?")
    if request.text.count('"id":') > 1:
        return Say(json.dumps({"sections": [{"id": n, "read": "adjacent"} for n in range(3)]}))
    return Say("other words for the question")


def plan(request: Request) -> Reply:
    """Ask the documents the question in other words."""
    question = json.loads(request.messages[-1]["content"])["last_message"]
    return Say(
        f"<websearch><question>not_needed</question></websearch><knowledge><rewrite>Tell me: {question}</rewrite>"
        f"<question>{question.removesuffix('?')} exactly</question></knowledge>"
    )


def ask(client: httpx.Client, model: ScriptedModel, question: str) -> Waited:
    before, at = count_calls(model), dict[str, float]()
    began = time.perf_counter()
    with client.stream("POST", "/api/ask", json={"question": question}) as response:
        for event in events(response.iter_lines()):
            at.setdefault(event.name, time.perf_counter() - began)
            last = event
    assert last.name == "done", last
    return Waited(
        first_results=at.get("first_results", 0.0),
        first_token=at["text"],
        done=at["done"],
        calls=count_calls(model) - before,
        citations=len(last.data["answer"]["citations"]),
    )


def count_calls(model: ScriptedModel) -> int:
    return len(model.requests) + len(model.planned)


def report(name: str, waited: Sequence[Waited]) -> None:
    first, token, done = (
        [getattr(one, field) for one in waited]
        for field in ("first_results", "first_token", "done")
    )
    print(
        f"{name:10} first results {median(first):.3f} s (max {max(first):.3f}), first token"
        f" {median(token):.2f} s (max {max(token):.2f}), done {median(done):.2f} s, calls"
        f" {max(one.calls for one in waited)}, citations {min(one.citations for one in waited)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--questions", type=int, default=len(QUESTIONS))
    arguments = parser.parse_args()

    def delayed(request: Request) -> Reply:
        time.sleep(arguments.delay)
        return reply(request)

    def delayed_plan(request: Request) -> Reply:
        time.sleep(arguments.delay)
        return plan(request)

    with tempfile.TemporaryDirectory() as folder, ScriptedModel(delayed) as model:
        model.plan = delayed_plan
        home = build_home(Path(folder))
        settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
        with serving(home, **settings) as server:
            ask(
                server.client, model, QUESTIONS[0]
            )  # the first question loads what the others find loaded
            asked = [ask(server.client, model, one) for one in QUESTIONS[: arguments.questions]]
            greeted = [ask(server.client, model, GREETING) for _ in asked]
    report("questions", asked)
    report("greetings", greeted)
    met = (
        median(one.first_results for one in asked) < FIRST_RESULTS
        and median(one.first_token for one in asked) <= FIRST_TOKEN
        and max(one.calls for one in asked) <= MOST_CALLS
        and median(one.first_token for one in greeted) <= ONE_ROUND
    )
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
