"""The cores of the server: one of two beside an answer process, and all that there are otherwise."""

import os
import threading
from collections.abc import Iterator

import pytest

from backend.api import server_cores
from backend.api.server_cores import ServerCores, list_cores, list_threads

BOTH = frozenset({0, 1})


class _Threads:
    """The cores that were set for each thread of this process, by a system that does as it is told."""

    def __init__(self) -> None:
        self.set: dict[int, frozenset[int]] = {}
        self.usable = BOTH

    def set_cores(self, thread: int, cores: set[int]) -> None:
        self.set[thread] = frozenset(cores)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> _Threads:
    threads = _Threads()
    monkeypatch.setattr(server_cores, "list_cores", lambda: threads.usable)
    monkeypatch.setattr(os, "sched_setaffinity", threads.set_cores)
    return threads


@pytest.fixture
def waiting() -> Iterator[threading.Thread]:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    yield thread
    end.set()
    thread.join()


def test_all_threads_keep_to_the_first_of_two_until_they_are_released(
    threads: _Threads, waiting: threading.Thread
) -> None:
    cores = ServerCores()
    cores.confine()
    assert waiting.native_id in threads.set
    assert threads.set.keys() >= list_threads()
    assert set(threads.set.values()) == {frozenset({0})}
    threads.usable = frozenset({0})
    cores.confine()
    cores.release()
    assert set(threads.set.values()) == {BOTH}


@pytest.mark.parametrize("count", [0, 1, 3, 64])
def test_with_fewer_or_more_cores_nothing_changes(threads: _Threads, count: int) -> None:
    threads.usable = frozenset(range(count))
    cores = ServerCores()
    cores.confine()
    cores.release()
    assert threads.set == {}


def test_where_the_system_refuses_it_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried = list[int]()
    monkeypatch.setattr(server_cores, "list_cores", lambda: BOTH)

    def refuse(thread: int, cores: set[int]) -> None:
        del cores
        tried.append(thread)
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    cores = ServerCores()
    cores.confine()
    assert len(tried) == 1
    assert "cannot choose its processor cores" in caplog.text
    cores.release()
    tried.clear()
    cores.confine()
    assert tried == []


@pytest.mark.skipif(
    len(list_cores()) < 2, reason="needs two cores, and Linux, which sets those of a thread"
)
def test_the_system_does_so(waiting: threading.Thread, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list_cores()
    two = sorted(before)[:2]
    cores, waits = ServerCores(), waiting.native_id or 0
    monkeypatch.setattr(server_cores, "list_cores", lambda: frozenset(two))
    try:
        cores.confine()
        assert os.sched_getaffinity(0) == os.sched_getaffinity(waits) == {two[0]}
        cores.release()
        assert os.sched_getaffinity(0) == os.sched_getaffinity(waits) == set(two)
    finally:
        server_cores.set_cores(before)
