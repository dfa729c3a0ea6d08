"""Which process holds a run, and whether it still lives."""

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backend.store.runs import Process, Run

SILENCE = timedelta(minutes=10)
"""After which a process of another machine, which cannot be looked at, is taken for dead."""

_STARTED = 19


def this_process() -> Process:
    number = os.getpid()
    return Process(socket.gethostname(), number, _started(number))


def is_gone(run: Run) -> bool:
    """Whether the process that holds the run has ended, or is to be treated as if it had."""
    holder = run.holder
    if holder.host != socket.gethostname():
        return datetime.now(UTC) - run.renewed_at > SILENCE
    return not _lives(holder.number) or _started(holder.number) != holder.started


def _lives(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _started(number: int) -> str:
    """Clock ticks from the start of the machine, as proc(5) has it; empty on other systems."""
    try:
        status = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name in parentheses may hold anything; what follows the last one are numbers.
    return status.rpartition(")")[2].split()[_STARTED]
