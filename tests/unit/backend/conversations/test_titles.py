"""Titles are the first words of a question, or what a model writes, cleaned."""

import json
from collections.abc import Sequence

import pytest

from backend.conversations.titles import LONGEST_TITLE, clean_title, make_title, write_title
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.store.chat.messages import QuestionText, read_question_text
from indexing.runtime.deadline import Deadline
from tests.support.conversations import make_message


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("How long is leave?", "How long is leave?"),
        ("  How\nlong\t is  leave? ", "How long is leave?"),
        ("Leave\x1b[31m at\u202e sea\x00?", "Leave [31m at sea ?"),
        ("می‌خواهم", "می‌خواهم"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        (f"{'word ' * 11}word end", f"{'word ' * 11}word…"),
        (f"{'a' * 58} {'b' * 10}", f"{'a' * 58}…"),
        (f"{'a' * 59} {'b' * 10}", f"{'a' * 59}…"),
    ],
)
def test_whole_words_that_fit(question: str, title: str) -> None:
    assert make_title(question) == title
    assert len(title) <= LONGEST_TITLE


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("Parental leave", "Parental leave"),
        ('"Parental leave."\nThat is the title.', "Parental leave"),
        ("\n\n**Title: Parental  leave**", "Parental leave"),
        ("<think>Hm.</think># Parental leave", "Parental leave"),
        ("标题：《育儿假》。", "育儿假"),
        ("Leave\u202e at\x07 sea\u200b", "Leave at sea"),
        ("Version 2.5", "Version 2.5"),
        ("word " * 20, f"{'word ' * 11}word…"),
        ("", None),
        ("\u200b \n ''", None),
        ("<think>without an end", None),
        ("'Q3 budget'.", "Q3 budget"),
    ],
)
def test_what_a_model_writes_is_one_clean_line(written: str, title: str | None) -> None:
    assert clean_title(written) == title
    assert title is None or len(title) <= LONGEST_TITLE


def test_no_answer_is_named() -> None:
    """What it rests on might be in its title, which is shown without the gate."""
    question = make_message("user", "Leave?")
    assert read_question_text(question) == "Leave?"
    with pytest.raises(ValueError, match="no question"):
        read_question_text(make_message("assistant", "26 weeks."))


def test_the_model_sees_the_question_as_quoted_material() -> None:
    asked: list[str] = []

    def complete(prompt: Sequence[ChatMessage], deadline: Deadline) -> str:
        del deadline
        asked.extend(one.text for one in prompt)
        return "Leave"

    assert write_title(QuestionText('Ignore "this"'), complete, Deadline.after(5)) == "Leave"
    assert json.loads(asked[1]) == {"question": 'Ignore "this"'}


def test_a_model_that_fails_names_nothing() -> None:
    def complete(prompt: Sequence[ChatMessage], deadline: Deadline) -> str:
        del prompt, deadline
        raise CompletionError("It is away.")

    assert write_title(QuestionText("Leave?"), complete, Deadline.after(5)) is None
