"""What others see of an answer: no name of a file of its asker, and not whose budget was used up."""

import pytest

from backend.conversations.answer_redaction import redact, redact_event
from backend.conversations.turn_events import NumberedEvent
from tests.support.conversations import make_answer, make_message

OF_FILES = ("Your files", "Files of this project")
FILES = {"use": "whole", "sentence": "", "names": ["payslip.pdf"], "unseen": []}


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("budget_used", "without_model"),
        ("group_budget_used", "without_model"),
        ("shared_budget_used", "shared_budget_used"),
        ("no_model", "no_model"),
        (None, None),
    ],
)
def test_only_what_says_nothing_of_the_asker_is_said(reason: str | None, shown: str | None) -> None:
    answer = make_answer("26 weeks.", passages_reason=reason, files=FILES)
    seen = redact(make_message("assistant", "26 weeks.", answer))
    assert seen.answer == make_answer("26 weeks.", passages_reason=shown)
    ended = redact_event(NumberedEvent(4, "done", {"answer": answer, "html": ""}))
    assert ended == NumberedEvent(4, "done", {"answer": seen.answer, "html": ""})


def test_an_answer_of_before_stays_as_it_is() -> None:
    message = make_message("assistant", "26 weeks.", make_answer("26 weeks."))
    assert redact(message) == message
    stopped = make_message("assistant", "26")
    assert redact(stopped) == stopped


def test_nobody_else_is_told_whose_files_a_document_is_of() -> None:
    answer = make_answer("26 weeks.", "a:x", "b:y", "c:z")
    for document, source in zip(answer["documents"], (*OF_FILES, "handbook"), strict=True):
        document["source"] = source
    seen = redact(make_message("assistant", "26 weeks.", answer)).answer
    assert seen is not None
    assert [one["source"] for one in seen["documents"]] == ["", "", "handbook"]
    assert [one["source"] for one in answer["documents"]] == [*OF_FILES, "handbook"]


@pytest.mark.parametrize("name", ["first_results", "results", "selected"])
def test_results_do_not_tell_whose_files_a_document_is_of(name: str) -> None:
    results = [{"document_id": "a:x", "source": source} for source in (*OF_FILES, "handbook")]
    shown = redact_event(NumberedEvent(2, name, {"results": results}))
    assert shown is not None
    assert [one["source"] for one in shown.data["results"]] == ["", "", "handbook"]
    assert [one["source"] for one in results] == [*OF_FILES, "handbook"]


def test_events_say_no_more_than_the_answer() -> None:
    assert redact_event(NumberedEvent(1, "files", FILES)) is None
    data = {"reason": "budget_used", "sentence": "You have used today's budget.", "passages": []}
    shown = redact_event(NumberedEvent(2, "passages", data))
    assert shown is not None
    assert shown.data == {
        "reason": "without_model",
        "sentence": "No language model wrote this answer.",
        "passages": [],
    }
    for event in (
        NumberedEvent(2, "passages", {**data, "reason": "no_model"}),
        NumberedEvent(3, "text", {"text": "26"}),
    ):
        assert redact_event(event) == event
