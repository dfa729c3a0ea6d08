"""Fifty people search, first alone and then while twenty chat, against a real `quarry serve` on the handbook.

    .venv/bin/python -m tests.benchmarks.load [--seconds 120] [--searchers 50] [--chatters 20] [--pause 3] [--reading 0]

The searchers are wrk (Debian's package `wrk`), which sends a question of the handbook's questions
on each of its connections some time after the last was answered, `--pause` seconds in the mean; what it counts is read from
its own report. The pauses are random, by the same numbers each time: after pauses of one length all fifty would ask in the same second again and again. The chatters are threads, each with a conversation of its own, that follow every event of
every answer and ask again after `--reading` seconds; the language model is the scripted one of the tests,
in another process, at 50 tokens a second. Wanted: no error, the 95th percentile of a search at most twice
that of the searchers alone, memory at the end at most 1.1 times that after thirty seconds, when everybody has had an answer
and what answers need is loaded, and less than 400 MB before the first request.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx

from backend.sample import handbook
from tests.support.home import Home
from tests.support.model_process import running_model
from tests.support.scripted_model import (
    Call,
    Manner,
    Reply,
    Request,
    Say,
    ToolUse,
)
from tests.support.serving import Serving, events, serving

QUESTIONS = Path(__file__).parents[1] / "acceptance" / "handbook_questions.jsonl"
EARLY = 30.0
"""Seconds after which memory is looked at first."""
WANTED_GROWTH, WANTED_RATIO, WANTED_IDLE = 1.1, 2.0, 400 * 2**20
ANSWER = (
    "Close the cover until it clicks [1]. Then hold the power button for three seconds [1]. " * 8
)

_SCRIPT = """
local bodies = {BODIES}
local at = 0
request = function()
  at = at % #bodies + 1
  return wrk.format("POST", "/api/search", {["Content-Type"] = "application/json", ["Authorization"] = "SECRET"}, bodies[at])
end
PAUSE
done = function(summary, latency, requests)
  io.write(string.format(
    '\\nREPORT {"requests": %d, "microseconds": %d, "p50": %d, "p95": %d, "p99": %d, "max": %d, '
    .. '"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(95),
    latency:percentile(99), latency.max, summary.errors.connect, summary.errors.read,
    summary.errors.write, summary.errors.status, summary.errors.timeout))
end
"""
_PAUSE = """
math.randomseed(7)
delay = function() return math.floor((0.4 + 1.2 * math.random()) * MEAN) end
"""
"""Shorter than the server keeps a connection that nothing is asked on."""
_ERRORS = ("connect", "read", "write", "status", "timeout")


@dataclass(frozen=True)
class Chatters:
    """What the threads that chat have seen; each adds to it."""

    ended: Counter[str] = field(default_factory=Counter)
    first: list[float] = field(default_factory=list)
    """Seconds to the first text."""
    whole: list[float] = field(default_factory=list)

    def chat(self, server: Serving, questions: list[str], end: float, reading: float) -> None:
        with httpx.Client(base_url=server.url, timeout=120, headers=server.authorization) as client:
            path, body = "/api/conversations", {"question": questions[0]}
            for number in range(1, 1_000_000):
                begun = client.post(path, json=body).raise_for_status().json()
                conversation, answer = begun["conversation"]["id"], begun["answer"]["id"]
                self._follow(client, f"/api/conversations/{conversation}/messages/{answer}/events")
                if time.monotonic() + reading >= end:
                    return
                time.sleep(reading)
                path = f"/api/conversations/{conversation}/messages"
                body = {"question": questions[number % len(questions)], "parent_id": answer}

    def _follow(self, client: httpx.Client, path: str) -> None:
        began, name, spoke = time.monotonic(), "nothing", 0.0
        with client.stream("GET", path) as response:
            for event in events(response.iter_lines()):
                name = event.name
                if name == "text" and not spoke:
                    spoke = time.monotonic() - began
        self.ended[name] += 1
        self.first.append(spoke)
        self.whole.append(time.monotonic() - began)


@dataclass(frozen=True)
class Phase:
    """What a time with so many chatters showed."""

    searches: Any
    """wrk's own report."""
    chatters: Chatters
    processor: float
    """Seconds of processor time of the server."""
    early: int
    late: int
    """Bytes of memory."""


def model_says(request: Request) -> Reply:
    """A model that helps with the search, searches, picks sections, and answers."""
    manner = Manner(delay=0.02)
    if request.has_sources:
        return Say(ANSWER, manner=manner)
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["power button cover"]}), manner=manner)
    return Say("cover power button", manner=manner)


def searched(
    server: Serving, folder: Path, questions: list[str], options: argparse.Namespace
) -> Any:
    """wrk's own report."""
    bodies = ", ".join(f"[==[{json.dumps({'query': one})}]==]" for one in questions)
    pause = _PAUSE.replace("MEAN", f"{options.pause * 1000:.0f}") if options.pause else ""
    script = folder / "search.lua"
    text = _SCRIPT.replace("SECRET", server.authorization["Authorization"])
    script.write_text(text.replace("BODIES", bodies).replace("PAUSE", pause), encoding="utf-8")
    command = ["wrk", "-t1", f"-c{options.searchers}", f"-d{options.seconds}s", "--timeout", "60s"]
    done = subprocess.run(
        [*command, "-s", str(script), server.url], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.partition("REPORT ")[2])


def run_phase(server: Serving, folder: Path, chatting: int, options: argparse.Namespace) -> Phase:
    questions = read_questions()
    chatters = Chatters()
    memory: dict[str, int] = {}
    end, spent = time.monotonic() + options.seconds, server.processor_seconds
    threads = [
        threading.Thread(
            target=chatters.chat,
            args=(server, questions[start % len(questions) :], end, options.reading),
        )
        for start in range(chatting)
    ]
    early = threading.Timer(EARLY, lambda: memory.update(early=server.resident))
    for each in (*threads, early):
        each.start()
    searches = searched(server, folder, questions, options)
    late, spent = server.resident, server.processor_seconds - spent
    for each in (*threads, early):
        each.join()
    return Phase(searches, chatters, spent, memory["early"], late)


def read_questions() -> list[str]:
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]


def show(phase: Phase) -> None:
    report = phase.searches
    rate = report["requests"] / report["microseconds"] * 1e6
    errors = {name: report[name] for name in _ERRORS}
    times = " ".join(f"{name} {report[name] / 1e3:.0f}" for name in ("p50", "p95", "p99", "max"))
    print(f"searches: {report['requests']}, {rate:.1f} a second; ms: {times}; errors: {errors}")
    if phase.chatters.whole:
        first, whole = _spread(phase.chatters.first), _spread(phase.chatters.whole)
        print(f"answers: {len(phase.chatters.whole)}, ended by: {dict(phase.chatters.ended)}")
        print(f"  to the first text, s: {first}; to the end: {whole}")
    cores = phase.processor / (report["microseconds"] / 1e6)
    print(f"the server kept {cores:.2f} cores busy; load of the machine {os.getloadavg()[0]:.1f}")


def are_met(idle: int, alone: Phase, both: Phase) -> bool:
    """Print each bar with its figure, and say whether all are met."""
    errors = sum(phase.searches[name] for phase in (alone, both) for name in _ERRORS)
    failed = sum(both.chatters.ended.values()) - both.chatters.ended["done"]
    ratio, growth = both.searches["p95"] / alone.searches["p95"], both.late / both.early
    print(f"errors: {errors} of searches, {failed} of answers (wanted: none)")
    print(f"p95 of a search, with those who chat ÷ without: {ratio:.2f} (at most {WANTED_RATIO})")
    print(f"memory: idle {idle / 2**20:.0f} MB (less than 400), growth {growth:.3f} (at most 1.1)")
    met = (ratio <= WANTED_RATIO, growth <= WANTED_GROWTH, idle < WANTED_IDLE)
    return errors == failed == 0 and all(met)


def _spread(seconds: list[float]) -> str:
    cuts = quantiles(seconds, n=20)
    return f"p50 {cuts[9]:.2f} p95 {cuts[18]:.2f}"


@contextmanager
def running(folder: Path) -> Iterator[Serving]:
    """A server over the handbook, with the scripted model."""
    home = Home(folder)
    for command in (("add", "folder", str(handbook())), ("sync",)):
        assert home.quarry(*command).code == 0
    with running_model(model_says) as address:
        settings = {"QUARRY_LLM_URL": address, "QUARRY_LLM_MODEL": "scripted"}
        with serving(home, **settings) as server:
            yield server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--searchers", type=int, default=50)
    parser.add_argument("--chatters", type=int, default=20)
    parser.add_argument("--pause", type=float, default=3.0)
    parser.add_argument("--reading", type=float, default=0.0)
    options = parser.parse_args()
    if options.seconds <= EARLY:
        parser.error(f"--seconds must be more than {EARLY:.0f}, after which memory is looked at")
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing: apt-get install wrk")
    with tempfile.TemporaryDirectory() as name, running(Path(name)) as server:
        idle, phases = server.resident, []
        for chatting in (0, options.chatters):
            print(f"{options.searchers} search every {options.pause} s, {chatting} chat")
            phases.append(run_phase(server, Path(name), chatting, options))
            show(phases[-1])
        sys.exit(not are_met(idle, *phases))


if __name__ == "__main__":
    main()
