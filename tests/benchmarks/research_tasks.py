"""How long research of six tasks takes, over research of one: agents work side by side.

    .venv/bin/python -m tests.benchmarks.research_tasks [--rounds N] [--seconds S]

A scripted model that answers each call after two seconds, behind its real protocol; documents in memory, pages and a search engine
over HTTP on this machine. Both runs plan, search documents and the web, read a page, answer, judge the answer, report on each task,
look for contradictions, and write a report whose citations are checked. Medians of the rounds. Wanted: 2.5 at most.

The command exits with 1 if it is missed.
"""

import argparse
import sys
import time
from statistics import median

from backend.research.record.research_record import ResearchRecord
from tests.support.research_world import ResearchWorld, research_world
from tests.support.scripted_model import Reply, Request

WANTED = 2.5
TASKS = 6
FACTS = {f"kb:{name}": f"The {name} pump costs {10 + at} EUR." for at, name in enumerate(
    ("Aster", "Birch", "Cedar", "Daisy", "Elder", "Fern")
)}  # fmt: skip
PAGES = {
    f"/{name}": (f"News of the {name} pump", f"The {name} pump weighs {10 + at} kg.")
    for at, name in enumerate(("Aster", "Birch", "Cedar", "Daisy", "Elder", "Fern"))
}
QUESTIONS = [f"What does the {document[3:]} pump cost?" for document in FACTS]


def measure_run(tasks: int, seconds: float) -> float:
    with research_world(FACTS, PAGES) as world:
        world.world.server.play(lambda request: answer_late(world, request, seconds))
        started = time.monotonic()
        record = world.run("; ".join(QUESTIONS[:tasks]), uses_web=True)
        check(record, tasks)
        return time.monotonic() - started


def answer_late(world: ResearchWorld, request: Request, seconds: float) -> Reply:
    time.sleep(seconds)
    return world.model(request)


def check(record: ResearchRecord, tasks: int) -> None:
    if record.report is None or len(record.written_reports) != tasks:
        raise SystemExit("A task has no report: the measurement says nothing.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    rounds = range(options.rounds)
    one = median(measure_run(1, options.seconds) for _ in rounds)
    six = median(measure_run(TASKS, options.seconds) for _ in rounds)
    ratio = six / one
    print(f"one task: {one:.1f} s, six tasks: {six:.1f} s, ratio: {ratio:.2f}, wanted: {WANTED}")
    sys.exit(ratio > WANTED)


if __name__ == "__main__":
    main()
