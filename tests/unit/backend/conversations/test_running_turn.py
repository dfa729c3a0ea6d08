"""What a turn writes is stored in events: one for all that was written since the last portion."""

from collections.abc import Sequence

import pytest

from backend.api.answer_events import TurnEncoder, plain_html
from backend.chat.events import ReasoningStep, TextPiece
from backend.conversations.running_turn import RunningTurn, Written
from backend.conversations.turn_events import EncodedEvent, decode_portions

LOST = EncodedEvent("lost", '{"step":"web","reason":"It is away."}')


def make_turn() -> RunningTurn:
    return RunningTurn(1, TurnEncoder("?", plain_html))


def write(turn: RunningTurn, *pieces: Written | EncodedEvent) -> None:
    for piece in pieces:
        if isinstance(piece, EncodedEvent):
            turn.add(piece)
        else:
            turn.write(piece)


def store(turn: RunningTurn) -> list[tuple[int, str, str]]:
    """Return number, name and text of what is stored."""
    unstored = turn.unstored()
    if unstored is None:
        return []
    turn.confirm(unstored)
    found = decode_portions([unstored.portion.payload])
    return [(each.number, each.name, each.data.get("text", "")) for each in found]


def test_the_first_piece_is_an_event_and_all_that_follow_are_one() -> None:
    turn = make_turn()
    write(turn, *map(TextPiece, ("One ", "two ", "three ")))
    assert store(turn) == [(1, "text", "One "), (2, "text", "two three ")]
    write(turn, *map(TextPiece, ("four ", "five.")))
    assert store(turn) == [(3, "text", "four five.")]
    assert store(turn) == []


@pytest.mark.parametrize(
    ("pieces", "names"),
    [
        ([ReasoningStep("Hm"), ReasoningStep("."), TextPiece("Yes")], ["reasoning"] * 2 + ["text"]),
        ([TextPiece("a"), TextPiece("b"), LOST, TextPiece("c")], ["text", "text", "lost", "text"]),
        ([TextPiece("a"), ReasoningStep("b"), TextPiece("c")], ["text", "reasoning", "text"]),
    ],
)
def test_what_is_written_keeps_its_order(
    pieces: Sequence[Written | EncodedEvent], names: Sequence[str]
) -> None:
    turn = make_turn()
    write(turn, *pieces)
    assert [name for _, name, _ in store(turn)] == list(names)


def test_what_is_written_while_a_portion_is_stored_belongs_to_the_next() -> None:
    turn = make_turn()
    write(turn, TextPiece("One "), TextPiece("two "))
    unstored = turn.unstored()
    assert unstored is not None
    write(turn, TextPiece("three."))
    turn.confirm(unstored)
    assert store(turn) == [(3, "text", "three.")]


def test_a_turn_that_is_stopped_keeps_what_was_written_just_before() -> None:
    turn = make_turn()
    write(turn, TextPiece("One "), TextPiece("two "))
    turn.break_off("stopped", "The answer was stopped.")
    write(turn, TextPiece("three."))
    unstored = turn.unstored()
    assert unstored is not None
    assert unstored.ending is not None
    assert unstored.ending.text == "One two "
    assert [name for _, name, _ in store(turn)] == ["text", "text", "stopped"]


def test_a_turn_that_cannot_be_stored_ends_without_what_was_written() -> None:
    turn = make_turn()
    write(turn, TextPiece("One "), TextPiece("two "))
    assert turn.give_up()
    assert [name for _, name, _ in store(turn)] == ["error"]


def test_text_that_cannot_be_sent_fails_where_it_is_written() -> None:
    """And not in the thread that stores all turns."""
    turn = make_turn()
    write(turn, TextPiece("One "))
    with pytest.raises(UnicodeEncodeError):
        turn.write(TextPiece("\ud800"))
    assert store(turn) == [(1, "text", "One ")]
