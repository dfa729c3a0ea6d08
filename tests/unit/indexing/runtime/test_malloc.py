"""The number of arenas that the C library keeps, as it reports itself."""

import subprocess
import sys

_SCRIPT = """
import ctypes, re, sys, threading
from indexing.runtime import malloc

library = ctypes.CDLL(None)
if sys.argv[1] == "limited":
    malloc.limit_arenas()
# Sixteen threads at once, each of which allocates memory.
at_once = threading.Barrier(16)
def work():
    held = [bytes(1000) for _ in range(1000)]
    at_once.wait()
    del held
threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library.malloc_stats()
"""


def test_there_are_at_most_two_arenas() -> None:
    assert arenas("limited") <= 2
    assert arenas("as usual") > 2


def arenas(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, how], capture_output=True, text=True, check=True
    )
    return done.stderr.count("Arena ")


_FREED = """
import re
from pathlib import Path
from indexing.runtime import malloc

def held():
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

malloc.TRIM_INTERVAL = 0.0
trimmer = malloc.MemoryTrimmer()
blocks = [bytearray(2_000) for _ in range(30_000)]
last = bytearray(2_000)  # above them, so that nothing is returned without a trim
blocks.clear()
before = held()
trimmer.trim_if_due()
print(before - held())
"""


def test_freed_memory_is_returned_to_the_system() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FREED], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 40_000  # kilobytes, of the sixty megabytes
