"""How many heaps the C library keeps, told by the library itself."""

import subprocess
import sys

_SCRIPT = """
import ctypes, re, sys, threading
from indexing.runtime import malloc

library = ctypes.CDLL(None)
if sys.argv[1] == "few":
    malloc.few()
# Sixteen threads at once, each with something of its own on the heap.
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


def test_there_are_at_most_two_heaps() -> None:
    assert heaps("few") <= 2
    assert heaps("as usual") > 2


def heaps(how: str) -> int:
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

malloc.EVERY = 0.0
giving = malloc.Giving()
blocks = [bytearray(2_000) for _ in range(30_000)]
last = bytearray(2_000)  # above them, so that nothing is given back by itself
blocks.clear()
before = held()
giving.now_and_then()
print(before - held())
"""


def test_what_is_free_is_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FREED], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 40_000  # kilobytes, of the sixty megabytes
