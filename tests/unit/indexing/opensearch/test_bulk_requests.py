"""Requests are of bounded size; pauses grow and end."""

import random
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.errors import TemporarilyUnavailableError
from indexing.opensearch.bulk_requests import Action, Pauses, packed
from indexing.opensearch.errors import SOON


@given(st.lists(st.binary(max_size=30)), st.integers(1, 50))
def test_requests_hold_all_actions_in_order_and_not_too_much(
    lines: list[bytes], limit: int
) -> None:
    actions = [Action(f"{n}", line) for n, line in enumerate(lines)]
    requests = list(packed(actions, limit))
    assert [action for request in requests for action in request] == actions
    for request in requests:
        assert request
        assert len(request) == 1 or sum(len(action.lines) for action in request) <= limit
    # No two neighbours would have gone into one.
    for one, following in pairwise(requests):
        assert sum(len(action.lines) for action in [*one, following[0]]) > limit


def test_actions_are_made_when_they_are_asked_for() -> None:
    made: list[int] = []

    def endless() -> Iterator[Action]:
        number = 0
        while True:
            made.append(number)
            yield Action("a", b"12345")
            number += 1

    requests = packed(endless(), limit=20)
    assert [len(next(requests)), len(next(requests))] == [4, 4]
    # One more than is given out: it did not fit any more.
    assert len(made) == 9


def test_pauses_double_and_end_in_what_was_the_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(random, "uniform", lambda *_: 1.0)
    pauses, reason = Pauses(patience=20.0), TemporarilyUnavailableError("full", SOON)
    for _ in range(8):
        pauses.wait(reason)
    with pytest.raises(TemporarilyUnavailableError) as raised:
        pauses.wait(reason)
    assert raised.value is reason
    # 0.1 + 0.2 + … + 3.2 = 6.3; 5 and 5 more are 16.3, and the next 5 would be too long.
    assert slept == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])
