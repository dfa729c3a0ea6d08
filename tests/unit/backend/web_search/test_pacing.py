"""How often providers are asked."""

from concurrent.futures import ThreadPoolExecutor

from backend.web_search.pacing import Pacer


def test_searches_are_counted_over_a_minute() -> None:
    now = [0.0]
    pacer = Pacer(lambda: now[0])
    assert [pacer.take_turn(1, 2) for _ in range(2)] == [None, None]
    assert pacer.take_turn(1, 2) == 60.0
    assert pacer.take_turn(2, 2) is None
    now[0] = 45.0
    assert pacer.take_turn(1, 2) == 15.0
    now[0] = 60.0
    assert [pacer.take_turn(1, 2) for _ in range(2)] == [None, None]
    assert pacer.take_turn(1, 2) == 60.0
    # A higher limit counts at once, a lower one too.
    assert pacer.take_turn(1, 3) is None
    assert pacer.take_turn(1, 1) == 60.0


def test_a_provider_that_asks_to_wait_rests() -> None:
    now = [0.0]
    pacer = Pacer(lambda: now[0])
    pacer.rest(1, 5.0)
    assert pacer.take_turn(1, 9) == 5.0
    assert pacer.take_turn(2, 9) is None
    now[0] = 5.0
    assert pacer.take_turn(1, 9) is None
    pacer.rest(1, 5.0)
    pacer.forget(1)
    assert pacer.take_turn(1, 9) is None


def test_threads_together_keep_to_the_limit() -> None:
    pacer = Pacer(lambda: 0.0)
    with ThreadPoolExecutor(8) as pool:
        turns = list(pool.map(lambda _: pacer.take_turn(1, 50), range(200)))
    assert turns.count(None) == 50
