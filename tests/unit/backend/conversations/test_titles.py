"""Titles are the first words of a question."""

import pytest

from backend.conversations.titles import LONGEST_TITLE, make_title


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("How long is leave?", "How long is leave?"),
        ("  How\nlong\t is  leave? ", "How long is leave?"),
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
