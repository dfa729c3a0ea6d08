"""The priority of the answer process."""

import os

import pytest

from backend.api import server_cores
from backend.worker import answer_worker


def test_a_thread_that_begins_while_others_are_lowered_is_lowered_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thread 2 starts thread 3, which inherits its priority, just before it is lowered itself; thread 4 has ended."""
    priorities = {1: 0, 2: 0}

    def get(which: int, thread: int) -> int:
        del which
        if thread == 4:
            raise ProcessLookupError
        return priorities[thread]

    def lower(which: int, thread: int, niceness: int) -> None:
        del which
        if thread == 2:
            priorities.setdefault(3, priorities[2])
        priorities[thread] = niceness

    monkeypatch.setattr(server_cores, "list_threads", lambda: {*priorities, 4})
    monkeypatch.setattr(os, "getpriority", get)
    monkeypatch.setattr(os, "setpriority", lower)
    answer_worker._lower_priority()
    assert priorities == dict.fromkeys([1, 2, 3], answer_worker.NICENESS)
