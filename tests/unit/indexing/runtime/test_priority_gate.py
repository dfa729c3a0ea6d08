"""Work that may wait does so while more urgent work is under way, but not for ever."""

import threading
import time
from itertools import pairwise

from indexing.runtime.priority_gate import PriorityGate

SOON = 30.0


def test_who_gives_way_waits_until_the_last_urgent_work_has_ended() -> None:
    priority_gate, gone_on = PriorityGate(), threading.Event()

    def yield_to_searches() -> None:
        priority_gate.wait(SOON)
        gone_on.set()

    with priority_gate.hold():
        with priority_gate.hold():
            thread = threading.Thread(target=yield_to_searches)
            thread.start()
        assert not gone_on.wait(0.05)
    assert gone_on.wait(SOON)
    thread.join()


def test_where_nothing_is_urgent_nobody_waits() -> None:
    priority_gate = PriorityGate()
    with priority_gate.hold():
        pass
    began = time.monotonic()
    priority_gate.wait(SOON)
    assert time.monotonic() - began < SOON / 2


def test_while_something_is_always_urgent_one_after_the_other_goes_on() -> None:
    priority_gate, gone_on = PriorityGate(), list[float]()

    def yield_to_searches() -> None:
        priority_gate.wait(0.05)
        gone_on.append(time.monotonic())

    threads = [threading.Thread(target=yield_to_searches) for _ in range(5)]
    with priority_gate.hold():
        for each in threads:
            each.start()
        for each in threads:
            each.join(SOON)
    assert len(gone_on) == 5
    assert all(later - before >= 0.045 for before, later in pairwise(gone_on))
