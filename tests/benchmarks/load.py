"""Fifty people search and ten ask, for a minute, against a real `quarry serve` on the handbook.

    .venv/bin/python -m tests.benchmarks.load [--seconds 60] [--searchers 50] [--askers 10] [--pause 0]

The searchers are wrk (Debian's package `wrk`), which sends a question of the handbook's questions
on each of its connections as soon as the last was answered, or after `--pause` seconds; what it
counts is read from its own report. The askers are threads that read every event of every answer;
the language model is the scripted one of the tests, five milliseconds a piece. Wanted: no error,
and memory at the end at most 1.1 times that after ten seconds.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx

from backend.sample import handbook
from tests.support.home import Home
from tests.support.scripted_model import (
    Call,
    Manner,
    Reply,
    Request,
    Say,
    ScriptedModel,
    ToolUse,
)
from tests.support.serving import Serving, events, serving

QUESTIONS = Path(__file__).parents[1] / "acceptance" / "handbook_questions.jsonl"
EARLY = 10.0
"""Seconds after which memory is looked at first."""
WANTED_GROWTH = 1.1
ANSWER = (
    "Close the cover until it clicks [1]. Then hold the power button for three seconds [1]. " * 4
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
_ERRORS = ("connect", "read", "write", "status", "timeout")


@dataclass(frozen=True)
class Askers:
    """What ten threads have seen; each adds to it."""

    ended: Counter[str] = field(default_factory=Counter)
    first: list[float] = field(default_factory=list)
    """Seconds to the first text."""
    whole: list[float] = field(default_factory=list)

    def ask(self, server: Serving, questions: list[str], until: float) -> None:
        with httpx.Client(base_url=server.url, timeout=120, headers=server.authorization) as client:
            for number in range(1_000_000):
                if time.monotonic() >= until:
                    return
                self._one(client, questions[number % len(questions)])

    def _one(self, client: httpx.Client, question: str) -> None:
        began, name, spoke = time.monotonic(), "nothing", 0.0
        with client.stream("POST", "/api/ask", json={"question": question}) as response:
            for event in events(response.iter_lines()):
                name = event.name
                if name == "text" and not spoke:
                    spoke = time.monotonic() - began
        self.ended[name] += 1
        self.first.append(spoke)
        self.whole.append(time.monotonic() - began)


def model_says(request: Request) -> Reply:
    """A model that helps with the search, searches, picks sections, and answers."""
    manner = Manner(delay=0.005)
    if any(message["role"] == "tool" for message in request.messages):
        return Say(ANSWER, manner=manner)
    if request.tool_names:
        return Call(ToolUse("internal_search", {"queries": ["power button cover"]}), manner=manner)
    return Say("cover power button", manner=manner)


def searched(
    server: Serving, folder: Path, questions: list[str], options: argparse.Namespace
) -> Any:
    """wrk's own report."""
    bodies = ", ".join(f"[==[{json.dumps({'query': one})}]==]" for one in questions)
    pause = f"delay = function() return {options.pause * 1000:.0f} end" if options.pause else ""
    script = folder / "search.lua"
    text = _SCRIPT.replace("SECRET", server.authorization["Authorization"])
    script.write_text(text.replace("BODIES", bodies).replace("PAUSE", pause), encoding="utf-8")
    command = ["wrk", "-t1", f"-c{options.searchers}", f"-d{options.seconds}s", "--timeout", "60s"]
    done = subprocess.run(
        [*command, "-s", str(script), server.url], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.partition("REPORT ")[2])


def measured(server: Serving, folder: Path, options: argparse.Namespace) -> None:
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    askers = Askers()
    until = time.monotonic() + options.seconds
    memory: dict[str, int] = {"idle": server.resident}
    threads = [
        threading.Thread(target=askers.ask, args=(server, questions[start:], until))
        for start in range(options.askers)
    ]
    early = threading.Timer(EARLY, lambda: memory.update(early=server.resident))
    for each in (*threads, early):
        each.start()
    report = searched(server, folder, questions, options)
    memory["late"] = server.resident
    for each in threads:
        each.join()
    _tell(report, askers, memory, options)


def _tell(report: Any, askers: Askers, memory: dict[str, int], options: argparse.Namespace) -> None:
    load = os.getloadavg()[0]
    rate = report["requests"] / report["microseconds"] * 1e6
    errors = {name: report[name] for name in _ERRORS}
    times = " ".join(f"{name} {report[name] / 1e3:.0f}" for name in ("p50", "p95", "p99", "max"))
    print(f"load {load:.1f}; {options.searchers} searchers, a pause of {options.pause} s")
    print(f"searches: {report['requests']}, {rate:.1f} a second; ms: {times}; errors: {errors}")
    print(f"answers: {sum(askers.ended.values())}, ended by: {dict(askers.ended)}")
    print(f"  to the first text, s: {_spread(askers.first)}; to the end: {_spread(askers.whole)}")
    growth = memory["late"] / memory["early"]
    reported = ", ".join(f"{name} {value / 2**20:.0f}" for name, value in memory.items())
    print(f"resident MB: {reported}; growth {growth:.3f} (wanted: at most {WANTED_GROWTH})")


def _spread(seconds: list[float]) -> str:
    cuts = quantiles(seconds, n=20)
    return f"p50 {cuts[9]:.2f} p95 {cuts[18]:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--searchers", type=int, default=50)
    parser.add_argument("--askers", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0.0)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing: apt-get install wrk")
    with tempfile.TemporaryDirectory() as name, ScriptedModel(model_says) as model:
        folder = Path(name)
        home = Home(folder)
        for command in (("add", "folder", str(handbook())), ("sync",)):
            assert home.quarry(*command).code == 0
        settings = {"QUARRY_LLM_URL": model.base_url, "QUARRY_LLM_MODEL": "scripted"}
        with serving(home, **settings) as server:
            measured(server, folder, options)


if __name__ == "__main__":
    main()
