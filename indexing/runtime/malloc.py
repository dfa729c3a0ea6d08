"""Memory that was freed serves others: threads that come and go, and at last other processes.

glibc gives threads heaps of their own, up to eight for each core, and keeps what is freed in them. A long run,
whose batches are written by one thread after the other, would grow by some 50 MB for 10,000 documents. Other C
libraries do no such thing.
"""

import ctypes
import platform
import time
from functools import cache

MOST = 2
EVERY = 5.0
"""Seconds; to give back takes some milliseconds."""
_M_ARENA_MAX = -8
"""Of malloc.h."""


@cache
def few() -> None:
    """Have at most two heaps from now on, as mallopt(3) has it; to be called before there are threads."""
    if library := _glibc():
        library.mallopt(_M_ARENA_MAX, MOST)


class Giving:
    """Gives back what is free now and then, as malloc_trim(3) does."""

    def __init__(self) -> None:
        self._due = time.monotonic() + EVERY

    def now_and_then(self) -> None:
        if time.monotonic() < self._due:
            return
        if library := _glibc():
            library.malloc_trim(0)
        self._due = time.monotonic() + EVERY


@cache
def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
