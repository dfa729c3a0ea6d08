"""The identity of processes that hold runs, and whether they are alive."""

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backend.store.runs import Process, Run

SILENCE_LIMIT = timedelta(minutes=10)
"""A process of another machine, which cannot be checked from here, counts as dead after this silence."""

_STARTED = 19


def this_process() -> Process:
    number = os.getpid()
    return Process(socket.gethostname(), number, _start_time(number))


def is_gone(run: Run) -> bool:
    """Return whether the process that holds the run has ended or lost its lease."""
    now = datetime.now(UTC)
    if run.lease_until is not None and run.lease_until < now:
        return True
    if run.lease_until is None and run.holder.host != socket.gethostname():
        return now - run.renewed_at > SILENCE_LIMIT
    return is_dead(run.holder)


def is_dead(process: Process) -> bool:
    """Return whether a process of this machine has ended; one of another machine never counts as dead."""
    if process.host != socket.gethostname():
        return False
    return not _is_alive(process.number) or _start_time(process.number) != process.started


def is_going_on(run: Run) -> bool:
    """Return whether a live process works on the run."""
    return run.state == "running" and not is_gone(run)


def _is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start_time(number: int) -> str:
    """Return the start time in clock ticks since boot, from proc(5); empty on other systems.

    Ticks, because they do not change when the clock of the machine is set.
    """
    try:
        status = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The program name in parentheses may contain anything; only numbers follow the last parenthesis.
    return status.rpartition(")")[2].split()[_STARTED]
