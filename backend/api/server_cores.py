"""The processor cores that the threads of the server run on beside an answer process."""

import logging
import os
import sys
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

LOG = logging.getLogger("quarry.processes")
FEW_CORES = 2
"""Of which the server keeps to one, and an answer process uses both; of more, it leaves one to the server."""


def list_cores() -> frozenset[int]:
    """Return the cores that this thread may run on; none where the system does not say."""
    return frozenset(os.sched_getaffinity(0)) if sys.platform == "linux" else frozenset()


def list_threads() -> set[int]:
    """Return the ids of the threads of this process, of which each has its own priority and cores on Linux; 0, for this one, elsewhere."""
    tasks = Path("/proc/self/task")
    return {int(task.name) for task in tasks.iterdir()} if tasks.exists() else {0}


def for_each_thread(change: Callable[[int], object]) -> None:
    """Call `change` with the id of each thread of this process; a change is one that threads inherit from those that start them."""
    done = set[int]()
    # Until there is none that was started meanwhile by one whose turn came later.
    while threads := list_threads() - done:
        for thread in threads:
            with suppress(ProcessLookupError):
                change(thread)
        done |= threads


class ServerCores:
    """Keeps the server to the first of two cores while the answer process works. Not thread-safe.

    Its threads hand the interpreter's lock to one another again and again within a search. On two cores that an answer process keeps
    busy as well, each waits for a core to take it: with twenty people who chat, 95 of 100 searches took 0.3 s, and take 0.2 s on one
    core (`tests/benchmarks/load.py`). Not tried on more cores, of which one is free more often. What is computed without the lock
    uses one core meanwhile.
    """

    def __init__(self) -> None:
        self._before: frozenset[int] | None = None
        """The cores of the server before it was confined; None while it is not."""
        self._is_refused = False

    def confine(self) -> None:
        """Keep all threads, and those that they start, to the first of two cores."""
        if self._before is not None or self._is_refused:
            return
        if len(cores := list_cores()) == FEW_CORES:
            self._before = cores
            self._set({min(cores)})

    def release(self) -> None:
        """Let all threads use the cores of before."""
        if self._before is not None:
            self._set(self._before)
            self._before = None

    def _set(self, cores: AbstractSet[int]) -> None:
        try:
            set_cores(cores)
        except OSError as error:
            # Such as in a container that may not, or whose cores have been changed.
            self._is_refused = True
            LOG.warning(
                "The server cannot choose its processor cores, and goes on as it is; searches may take longer while several people chat: %s",
                error,
            )


def set_cores(cores: AbstractSet[int]) -> None:
    """Set the cores of each thread (sched_setaffinity(2)).

    Raises:
        OSError: the system refuses it.
    """
    if sys.platform == "linux":
        for_each_thread(lambda thread: os.sched_setaffinity(thread, cores))
