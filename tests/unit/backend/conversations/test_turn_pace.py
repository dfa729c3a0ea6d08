"""A turn goes on in short steps: searches go first between them, and no word is waited for alone."""

import time

import pytest

from backend.conversations import turn_pace
from backend.conversations.turn_pace import BETWEEN_TURNS, TurnPace


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    monkeypatch.setattr(turn_pace, "PAUSE", 0.05)
    monkeypatch.setattr(turn_pace, "STEP", 0.0)
    return []


def test_a_turn_pauses_after_a_step_and_lets_searches_go_first(waits: list[float]) -> None:
    pace = TurnPace(waits.append)
    pace.pause()
    began = time.monotonic()
    pace.pause()
    assert time.monotonic() - began >= 0.05
    assert waits == [BETWEEN_TURNS] * 2


def test_the_first_text_is_not_held_up(waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is an answer without a model, all of which is written at once."""
    monkeypatch.setattr(turn_pace, "PAUSE", 60.0)
    TurnPace(waits.append).pause()


def test_between_two_steps_without_text_it_only_lets_searches_go_first(waits: list[float]) -> None:
    pace = TurnPace(waits.append)
    pace.yield_to_searches()
    assert waits == [BETWEEN_TURNS]


def test_all_that_was_written_during_a_pause_is_one_step(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_pace, "STEP", 60.0)
    pace = TurnPace(waits.append)
    for _ in range(100):
        pace.pause()
        pace.yield_to_searches()
    assert waits == []


def test_in_the_midst_of_a_step_it_lets_searches_go_first_only_where_the_step_is_long(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_pace, "LONG_STEP", 60.0)
    pace = TurnPace(waits.append)
    pace.yield_within_step()
    assert waits == []
    monkeypatch.setattr(turn_pace, "LONG_STEP", 0.0)
    pace.yield_within_step()
    assert waits == [BETWEEN_TURNS]
