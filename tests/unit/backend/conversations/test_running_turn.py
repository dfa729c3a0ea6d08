"""What a turn writes is stored in events: one for all that was written since the last portion."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from backend.api.answer_events import TurnEncoder, plain_html
from backend.chat.events import ReasoningStep, TextPiece
from backend.conversations.running_turn import RunningTurn, Written
from backend.conversations.turn_events import EncodedEvent, decode_portions
from backend.schemas.answer import AnswerResponse
from backend.store.chat.turns import Ending

CITED = {
    "number": 1,
    "document_id": "wiki:pay",
    "title": "Pay",
    "link": "https://x",
    "kind": "file",
}
UNCHECKED = {"quote": "", "section": 0, "span": [0, 0], "score": 0.0, "verdict": "unchecked"}
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
    assert unstored.ending.answer is None
    assert [name for _, name, _ in store(turn)] == ["text", "text", "stopped"]


def cite(**changed: object) -> EncodedEvent:
    return EncodedEvent("citation", json.dumps({**CITED, **changed}))


def test_a_turn_that_is_stopped_keeps_the_citations_of_what_was_written() -> None:
    turn, text = make_turn(), "Band five [[1]](https://x), says [2]"
    write(turn, TextPiece("Band five "), cite(), TextPiece("[[1]](https://x), says "))
    write(turn, cite(number=2, link=""), TextPiece("[2]"), cite(number=3))
    turn.break_off("stopped", "The answer was stopped.")
    ending = turn_ending(turn)
    assert ending.text == text
    assert ending.answer is not None
    assert AnswerResponse.model_validate({**ending.answer, "question": "?"}).answer == text
    assert ending.answer["citations"] == [
        {**CITED, **UNCHECKED},
        {**CITED, **UNCHECKED, "number": 2, "link": ""},
    ]


def select(*results: dict[str, object]) -> EncodedEvent:
    return EncodedEvent("selected", json.dumps({"results": results}))


def preview(document_id: str, **changed: object) -> dict[str, object]:
    place = {"section": 2, "span": [40, 90], "heading_path": ["Pay", "Bands"]}
    origin = {"source": "wiki", "updated_at": "2026-01-05T08:00:00Z"}
    return {"document_id": document_id, "content": "Band five.", **place, **origin, **changed}


def test_a_turn_that_is_stopped_keeps_where_what_it_cites_comes_from() -> None:
    turn = make_turn()
    write(turn, select(preview("wiki:pay", content="Band four.")))
    nearest, other = preview("wiki:pay"), preview("wiki:pay", content="Band six.", section=3)
    write(turn, select(preview("wiki:uncited"), nearest, other), select(preview("wiki:else")))
    write(turn, cite(kind="document"), cite(number=2, document_id="wiki:whole"))
    write(turn, TextPiece("Band five [[1]](https://x) and [[2]](https://x)"))
    turn.break_off("stopped", "The answer was stopped.")
    kept = turn_ending(turn).answer
    assert "wiki:uncited" not in json.dumps(kept)
    assert "wiki:else" not in json.dumps(kept)
    answer = AnswerResponse.model_validate({**(kept or {}), "question": "?"})
    first, second = answer.citations
    assert (first.quote, first.section, first.span) == ("Band five.", 2, (40, 90))
    assert (first.verdict, second.quote, second.span) == ("unchecked", "", (0, 0))
    known, whole = answer.documents
    assert (known.source, known.updated_at) == ("wiki", datetime(2026, 1, 5, 8, tzinfo=UTC))
    assert [one.heading_path for one in known.sections] == [("Pay", "Bands")]
    assert (whole.document_id, whole.number, whole.sections) == ("wiki:whole", 2, ())
    assert known.cited
    assert whole.cited


def test_a_turn_that_fails_keeps_the_citations_of_what_was_written() -> None:
    turn = make_turn()
    write(turn, cite(), TextPiece("[[1]](https://x)"))
    assert turn.break_down()
    ending = turn_ending(turn)
    assert ending.problem is not None
    assert ending.answer is not None
    assert [one["number"] for one in ending.answer["citations"]] == [1]


def turn_ending(turn: RunningTurn) -> Ending:
    unstored = turn.unstored()
    assert unstored is not None
    assert unstored.ending is not None
    return unstored.ending


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
