"""`quarry search` and `quarry --help` as whole processes, at 100,000 chunks.

    .venv/bin/python -m tests.benchmarks.whole_process [--chunks N] [--times N]

Each command is run once to warm it, then several times with a new question each time; the table
has the median of the seconds from start to end, that of the seconds of processor (which another
load on the machine changes less), and the highest peak of resident memory, which
counts pages of mapped files that the process has read. At the end stand the libraries that the
search has loaded although it needs none of them.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from tests.benchmarks import scale
from tests.support.models import MODEL_CACHE

QUARRY = Path(sys.executable).with_name("quarry")
WANTED = {"search": "2 s, 450 MB", "--help": "0.3 s"}
HEAVY = (
    "torch",
    "transformers",
    "sentence_transformers",
    "sqlalchemy",
    "alembic",
    "openai",
    "httpx",
    "pypdf",
    "pypdfium2",
    "docx",
    "openpyxl",
    "pandas",
    "scipy",
    "sklearn",
)
"""What a search without a language model has no use for."""
_LOADED = """
import sys
from backend.cli import app
try:
    app(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "QUARRY_HOME": str(home), "QUARRY_MODELS": str(MODEL_CACHE)}


def search_arguments(question: str) -> list[str]:
    return ["search", "--json", "--as", scale.READER, question]


def spent(command: Sequence[str], variables: Mapping[str, str]) -> tuple[float, float, float]:
    """Seconds, seconds of processor, peak resident memory in MB of a command that succeeds."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL)
    # A process's peak begins at what its parent had when it started it: the index is therefore
    # built by a process of its own, and this one stays smaller than what it measures.
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{command} ended with {process.returncode}"
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def row(name: str, commands: Sequence[Sequence[str]], variables: Mapping[str, str]) -> str:
    spent(commands[0], variables)
    figures = [spent(command, variables) for command in commands[1:]]
    seconds, processor, memory = zip(*figures, strict=True)
    reported = f"{median(seconds):.2f} | {max(seconds):.2f} | {median(processor):.2f}"
    return f"| quarry {name} | {reported} | {max(memory):.0f} | {WANTED[name]} |"


def needlessly_loaded(variables: Mapping[str, str], question: str) -> list[str]:
    """Of the heavy libraries, those that a search imports."""
    ran = subprocess.run(
        [sys.executable, "-c", _LOADED, *search_arguments(question)],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(ran.stderr.splitlines()[-1].split())
    return [name for name in HEAVY if name in loaded]


def measure(home: Path, times: int) -> None:
    variables, questions = environment(home), scale.questions(times + 1)
    searches = [[str(QUARRY), *search_arguments(question)] for question in questions]
    helps = [[str(QUARRY), "--help"]] * (times + 1)
    print(f"median of {times}, load {os.getloadavg()[0]:.1f}")
    print("| command | median, s | slowest, s | processor, s | peak memory, MB | wanted |")
    print("|---|---|---|---|---|---|")
    print(row("search", searches, variables))
    print(row("--help", helps, variables))
    found = needlessly_loaded(variables, questions[0])
    print(f"\nloaded without need: {', '.join(found) or 'nothing'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--chunks", type=int, default=scale.CHUNKS)
    parser.add_argument("--times", type=int, default=7)
    arguments = parser.parse_args()
    build = [sys.executable, "-m", scale.__name__, str(arguments.chunks)]
    built = subprocess.run(build, stdout=subprocess.PIPE, text=True, check=True)
    measure(Path(built.stdout.strip()), arguments.times)


if __name__ == "__main__":
    main()
