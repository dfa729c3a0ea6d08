"""Keep glibc's allocator from holding on to freed memory.

glibc gives threads their own arenas, up to eight for each core, and keeps freed memory in them. A long sync,
whose batches are written by one thread after another, would grow by some 50 MB for 10,000 documents. Other C
libraries do not do this.
"""

import ctypes
import platform
import time
from functools import cache

ARENAS = 2
TRIM_INTERVAL = 5.0
"""Seconds; a trim takes some milliseconds."""
_M_ARENA_MAX = -8
"""The constant of malloc.h."""


@cache
def limit_arenas() -> None:
    """Limit the number of arenas by mallopt(3); call it before threads are started."""
    if library := _glibc():
        library.mallopt(_M_ARENA_MAX, ARENAS)


class MemoryTrimmer:
    """Returns freed memory to the system by malloc_trim(3), once an interval."""

    def __init__(self) -> None:
        self._due = time.monotonic() + TRIM_INTERVAL

    def trim_if_due(self) -> None:
        if time.monotonic() < self._due:
            return
        if library := _glibc():
            library.malloc_trim(0)
        self._due = time.monotonic() + TRIM_INTERVAL


@cache
def _glibc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if platform.libc_ver()[0] == "glibc" else None
