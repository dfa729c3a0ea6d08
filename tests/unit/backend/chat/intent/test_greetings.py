"""What is nothing but a greeting or thanks, and what only begins with one."""

import pytest

from backend.chat.intent.greetings import LONGEST, is_greeting


@pytest.mark.parametrize(
    "message",
    [
        "Hi",
        "Hi there!",
        "hey team",
        "Good evening, everyone",
        "Merci beaucoup !",
        "thanks a lot :)",
        "Thank you very much.",
        "Vielen Dank",
        "Guten Tag zusammen",
        "谢谢大家",
        "おはようございます",
        "Hello! Good morning!",
    ],
)
def test_greetings_and_thanks(message: str) -> None:
    assert is_greeting(message)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Hi, what is the leave policy?",
        "Thanks. And for adoptions?",
        "Who is Hi-Tech GmbH?",
        "Danke-Karte Vorlage",
        "Good morning meeting time?",
        "こんにちはの由来は？",
        "你好，差旅标准是多少？",
        "hi " * LONGEST,
    ],
)
def test_what_asks_for_something_or_is_long(message: str) -> None:
    assert not is_greeting(message)
