"""The cores of the server: one of two beside an answer process, and all that there are otherwise."""

import os
import threading
from collections.abc import Iterator

import pytest

from backend.api.server_cores import ServerCores, list_cores


@pytest.fixture(autouse=True)
def _all_cores_again() -> Iterator[None]:
    before = list_cores()
    yield
    for each in threading.enumerate():
        os.sched_setaffinity(each.native_id or 0, before)


def _cores_of_all_threads() -> set[frozenset[int]]:
    threads = threading.enumerate()
    return {frozenset(os.sched_getaffinity(each.native_id or 0)) for each in threads}


def test_all_threads_and_those_that_they_start_keep_to_the_first_of_two() -> None:
    first, *others = sorted(list_cores())
    assert others, "this test needs two cores"
    second = others[0]
    waiting, seen = threading.Event(), list[frozenset[int]]()
    threading.Thread(target=waiting.wait, daemon=True).start()
    cores = ServerCores({first, second})
    cores.confine()
    started = threading.Thread(target=lambda: seen.append(list_cores()))
    started.start()
    started.join()
    assert _cores_of_all_threads() == {frozenset({first})}
    assert seen == [frozenset({first})]
    cores.release()
    assert _cores_of_all_threads() == {frozenset({first, second})}
    waiting.set()


@pytest.mark.parametrize("count", [0, 1, 3, 64])
def test_with_fewer_or_more_cores_nothing_changes(count: int) -> None:
    before = list_cores()
    cores = ServerCores(frozenset(range(count)))
    cores.confine()
    assert list_cores() == before
    cores.release()
    assert list_cores() == before
