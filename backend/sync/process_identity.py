"""Which process holds a run, and whether it still lives."""

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backend.store.runs import Process, Run

SILENCE_LIMIT = timedelta(minutes=10)
"""After which a process of another machine, which cannot be looked at, is taken for dead."""

_STARTED = 19


def this_process() -> Process:
    number = os.getpid()
    return Process(socket.gethostname(), number, _start_time(number))


def is_gone(run: Run) -> bool:
    """Whether the process that holds the run has ended, or is to be treated as if it had."""
    now = datetime.now(UTC)
    if run.lease_until is not None and run.lease_until < now:
        return True
    if run.lease_until is None and run.holder.host != socket.gethostname():
        return now - run.renewed_at > SILENCE_LIMIT
    return is_dead(run.holder)


def is_dead(process: Process) -> bool:
    """Whether a process has ended, as far as that can be seen from here: of another machine it cannot."""
    if process.host != socket.gethostname():
        return False
    return not _is_alive(process.number) or _start_time(process.number) != process.started


def is_going_on(run: Run) -> bool:
    """Whether a process works on the run at this moment."""
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
    """Clock ticks from the start of the machine, as proc(5) has it; empty on other systems."""
    try:
        status = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name in parentheses may hold anything; what follows the last one are numbers.
    return status.rpartition(")")[2].split()[_STARTED]
