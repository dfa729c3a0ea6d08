"""A process and all that it started."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from backend.web_search.browser.process_tree import (
    describe_processes,
    kill_descendants,
    list_descendants,
    measure_memory,
)

HELD = 64 << 20

# A child that starts a grandchild in a session of its own and ends, and a process that adopts what is left.
PROGRAM = f"""
import subprocess, sys, time
from backend.web_search.browser.page_program import _adopt_orphans
_adopt_orphans()
grandchild = "import time; held = bytearray(b'x') * {HELD}; print(len(held), flush=True); time.sleep(60)"
child = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)"
subprocess.run([sys.executable, "-c", child, grandchild], check=True)
time.sleep(60)
"""


@pytest.fixture
def root() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_what_a_child_leaves_behind_is_found_measured_and_killed(root: int) -> None:
    (orphan,) = list_descendants(root)
    assert describe_processes([orphan])[0].arguments[1] == "-c"
    assert measure_memory(root) > measure_memory(orphan) > HELD
    kill_descendants(root)
    assert list_descendants(root) == []
    assert describe_processes([root])[0].number == root


def test_a_process_that_has_ended_is_nobodys_descendant() -> None:
    with subprocess.Popen(["/bin/true"]) as ended:
        until = time.monotonic() + 10
        while ended.pid in list_descendants(os.getpid()):
            assert time.monotonic() < until
            time.sleep(0.01)
    assert describe_processes([ended.pid]) == []
