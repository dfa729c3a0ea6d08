"""Work that may wait does so while more urgent work is under way, but not for ever."""

import threading
import time

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


def test_nobody_waits_for_longer_than_they_would() -> None:
    right_of_way = RightOfWay()
    with right_of_way.take():
        right_of_way.give(0.01)
