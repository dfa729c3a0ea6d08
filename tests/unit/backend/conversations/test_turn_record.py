"""What is kept of how an answer came about."""

import json

from backend.api.answer_events import TurnEncoder, plain_html
from backend.conversations.running_turn import RunningTurn
from backend.conversations.turn_events import EncodedEvent
from backend.conversations.turn_record import SearchedVariant, read_steps, read_variants
from backend.schemas.conversation import read_answer
from tests.support.conversations import make_answer


def _queries(*texts: str) -> EncodedEvent:
    variants = [{"name": "semantic", "text": text, "weight": 1.0} for text in texts]
    return EncodedEvent("queries", json.dumps({"variants": variants}))


def test_the_last_variants_and_the_first_of_each_step_are_kept_with_the_answer() -> None:
    turn = RunningTurn(1, TurnEncoder("?", plain_html))
    for event in (_queries("one"), EncodedEvent("results", "{}"), _queries("one", "two")):
        turn.add(event)
    answer = make_answer("Yes.", "a") | {"question": "?"}
    turn.finish(EncodedEvent("done", json.dumps({"answer": answer})), "Yes.")
    unstored = turn.unstored()
    assert unstored is not None
    assert unstored.ending is not None
    stored = unstored.ending.answer or {}
    assert [one.text for one in read_variants(stored)] == ["one", "two"]
    assert list(read_steps(stored)) == ["queries", "results"]
    assert read_answer("?", stored).answer == "Yes."
    assert "record" not in read_answer("?", stored).model_dump()


def test_of_an_answer_of_before_nothing_is_known() -> None:
    assert read_variants({}) == ()
    assert read_steps({}) == {}
    kept = {"record": {"variants": [{"name": "original", "text": "x", "weight": 2}], "steps": {}}}
    assert read_variants(kept) == (SearchedVariant("original", "x"),)
