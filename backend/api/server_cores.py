"""The processor cores that the threads of the server run on beside an answer process."""

import os
import sys
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

_MOST_TO_CONFINE = 2


def list_cores() -> frozenset[int]:
    """Return the cores that this thread may run on; none where the system does not say."""
    return frozenset(os.sched_getaffinity(0)) if sys.platform == "linux" else frozenset()


class ServerCores:
    """Keeps the server to the first of two cores while the answer process works.

    Threads that hand the interpreter's lock to one another on two busy cores wait for a core each time, and a search hands it over
    a hundred times: with twenty people who chat, 95 of 100 searches take 0.2 s at most on one core, and 0.3 s on both. Where there
    are more cores, they seldom wait. What is computed without the lock uses one core meanwhile.

    Args:
        cores: those that the server may use.
    """

    def __init__(self, cores: AbstractSet[int]) -> None:
        self._cores = frozenset(cores)
        self._are_confined = False

    def confine(self) -> None:
        """Keep all threads, and those that they start, to the first of two cores."""
        if len(self._cores) == _MOST_TO_CONFINE and not self._are_confined:
            self._are_confined = True
            _set_cores({min(self._cores)})

    def release(self) -> None:
        """Let all threads use all cores again."""
        if self._are_confined:
            self._are_confined = False
            _set_cores(self._cores)


def _set_cores(cores: AbstractSet[int]) -> None:
    """Set the cores of each thread: on Linux a thread has its own (sched_setaffinity(2))."""
    if sys.platform == "linux":
        for task in Path("/proc/self/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(task.name), cores)
