"""Work that may wait does so while more urgent work is under way, but not for ever."""

import threading
import time
from itertools import pairwise

from indexing.runtime.right_of_way import RightOfWay

SOON = 30.0


def test_who_gives_way_waits_until_the_last_urgent_work_has_ended() -> None:
    right_of_way, gone_on = RightOfWay(), threading.Event()

    def give_way() -> None:
        right_of_way.give(SOON)
        gone_on.set()

    with right_of_way.take():
        with right_of_way.take():
            thread = threading.Thread(target=give_way)
            thread.start()
        assert not gone_on.wait(0.05)
    assert gone_on.wait(SOON)
    thread.join()


def test_where_nothing_is_urgent_nobody_waits() -> None:
    right_of_way = RightOfWay()
    with right_of_way.take():
        pass
    began = time.monotonic()
    right_of_way.give(SOON)
    assert time.monotonic() - began < SOON / 2


def test_while_something_is_always_urgent_one_after_the_other_goes_on() -> None:
    right_of_way, gone_on = RightOfWay(), list[float]()

    def give_way() -> None:
        right_of_way.give(0.05)
        gone_on.append(time.monotonic())

    threads = [threading.Thread(target=give_way) for _ in range(5)]
    with right_of_way.take():
        for each in threads:
            each.start()
        for each in threads:
            each.join(SOON)
    assert len(gone_on) == 5
    assert all(later - before >= 0.045 for before, later in pairwise(gone_on))
