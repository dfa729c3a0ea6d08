"""A process and all that it started, as the kernel lists them: what they use, and their end."""

import os
import signal
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_KILL_SECONDS = 5.0
_MEASURED = ("RssAnon:", "RssShmem:")
"""Memory that a file does not back: the program itself, which all its processes share, is left out."""


@dataclass(frozen=True, slots=True)
class Process:
    number: int
    arguments: tuple[str, ...]
    status: dict[str, str]
    """What the kernel says of it, by the names of its fields, such as `Seccomp:`."""


def list_descendants(root: int) -> list[int]:
    """Return the processes below one, those that have ended and were not yet waited for left out."""
    children: dict[int, list[int]] = defaultdict(list)
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and (parent := _read_parent(folder)) is not None:
            children[parent].append(int(folder.name))
    found, todo = [], [root]
    while todo:
        below = children[todo.pop()]
        found += below
        todo += below
    return found


def _read_parent(folder: Path) -> int | None:
    """Return the parent of a process; None if there is no such process any more."""
    try:
        line = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name of the program, in parentheses, may hold anything.
    state, parent, *_ = line.rpartition(")")[2].split()
    return None if state in "ZX" else int(parent)


def describe_processes(numbers: list[int]) -> list[Process]:
    """Describe those that still run."""
    described = []
    for number in numbers:
        with suppress(OSError):
            described.append(_describe(number))
    return described


def _describe(number: int) -> Process:
    folder = _PROC / str(number)
    status = (folder / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    arguments = (folder / "cmdline").read_text(encoding="utf-8", errors="replace")
    fields = (line.split(maxsplit=1) for line in status)
    return Process(
        number=number,
        # Chromium writes the arguments of some of its processes anew, with blanks between them.
        arguments=tuple(arguments.replace("\0", " ").split()),
        status={field[0]: field[1] for field in fields if len(field) == 2},
    )


def measure_memory(root: int) -> int:
    """Return the bytes of memory that a process and all below it use."""
    return sum(
        int(process.status[name].split()[0]) * 1024
        for process in describe_processes([root, *list_descendants(root)])
        for name in _MEASURED
        if name in process.status
    )


def kill_descendants(root: int) -> None:
    """Kill all that a process started, and what that leaves behind if the process adopts it."""
    until = time.monotonic() + _KILL_SECONDS
    while (below := list_descendants(root)) and time.monotonic() < until:
        for number in below:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.01)
