"""What is said to the model always fits its window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.agent.tool_definitions import INTERNAL_SEARCH
from backend.chat.history import (
    Conversation,
    MessageTooLongError,
    ToolExchange,
    TurnStart,
    recent_messages,
)
from backend.chat.llm.messages import CallMessage, ModelMessage, ToolCall, ToolResult
from backend.chat.prompts import NO_LONGER_SHOWN, SUM_UP
from backend.search.llm_protocol import ChatMessage


def words(text: str) -> int:
    return len(text.split())


def said(role: str, text: str) -> ChatMessage:
    return ChatMessage("user" if role == "user" else "assistant", text)


def exchange(name: str, size: int) -> ToolExchange:
    call = ToolCall(name, "internal_search", f'{{"queries": ["{name}"]}}')
    return ToolExchange(CallMessage("", (call,)), (ToolResult(name, f"{name} " * size),))


def conversation(
    window: int, message: str = "why?", history: tuple[ChatMessage, ...] = ()
) -> Conversation:
    opening = TurnStart(instructions=(), today=None, history=history, message=message, files="")
    return Conversation(opening, window, words)


def size(messages: list[ModelMessage]) -> int:
    return sum(
        words(m.text)
        if not isinstance(m, CallMessage)
        else words(m.text) + sum(words(call.arguments) for call in m.calls)
        for m in messages
    )


def results(messages: list[ModelMessage]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolResult)]


HISTORY = (
    said("user", "a a a"),
    said("assistant", "b b"),
    said("user", "c c c c"),
    said("assistant", "d"),
)


@pytest.mark.parametrize(
    ("room", "kept"),
    [
        (100, HISTORY),
        (10, HISTORY),  # 3 + 2 + 4 + 1
        (9, HISTORY[2:]),  # b alone would fit, but an answer without its question is left out
        (7, HISTORY[2:]),
        (5, HISTORY[2:]),  # 4 + 1
        (4, ()),  # d fits, but is an answer without its question
        (0, ()),
        (-3, ()),
    ],
)
def test_the_oldest_messages_go_first(room: int, kept: tuple[ChatMessage, ...]) -> None:
    assert recent_messages(HISTORY, room, lambda m: words(m.text)) == list(kept)


def test_the_oldest_results_go_before_later_ones() -> None:
    talk = conversation(500)
    for name in ("one", "two", "three"):
        talk.add_exchange(exchange(name, 150))
    assert [text[:5] for text in results(talk.messages([]))] == [
        NO_LONGER_SHOWN[:5],
        "two t",
        "three",
    ]


def test_results_are_put_into_the_question_as_far_as_they_fit() -> None:
    talk = conversation(500)
    for name in ("one", "two", "three"):
        talk.add_exchange(exchange(name, 150))
    talk.put_exchanges()
    _, question = talk.messages([])
    assert isinstance(question, ChatMessage)
    assert "one one" not in question.text
    assert question.text.count("two two") == 75
    assert question.text.count("three three") == 75
    with pytest.raises(MessageTooLongError):
        talk.budgets([])


def test_results_go_before_history() -> None:
    talk = conversation(420, history=(said("user", "old " * 200),))
    assert len(talk.messages([])) == 3
    talk.add_exchange(exchange("one", 150))
    texts = [m.text for m in talk.messages([])]
    assert not any(text.startswith("old") for text in texts)
    assert texts[-1].startswith("one one")


def test_a_search_is_given_no_more_than_still_fits() -> None:
    assert conversation(40_000).budgets([INTERNAL_SEARCH]).answer == 10_000
    assert conversation(200_000).budgets([INTERNAL_SEARCH]).answer == 12_800
    assert conversation(1_000, "word " * 400).budgets([INTERNAL_SEARCH]).answer <= 250


def test_a_message_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(MessageTooLongError):
        conversation(1_000, "word " * 990).messages([])
    with pytest.raises(MessageTooLongError):
        conversation(1_000, "word " * 800).budgets([])


def test_a_model_that_is_offered_no_tools_is_sent_none() -> None:
    talk = conversation(2_000)
    with_tools, without = talk.messages([INTERNAL_SEARCH])[0], talk.messages([])[0]
    assert "internal_search" in with_tools.text
    assert "internal_search" not in without.text


@given(
    st.integers(600, 3_000),
    st.lists(st.integers(0, 400), max_size=8),
    st.lists(st.integers(0, 100), max_size=6),
)
def test_every_prompt_fits_and_the_latest_results_are_in_it(
    window: int, history: list[int], found: list[int]
) -> None:
    turns = tuple(
        said("user" if i % 2 == 0 else "assistant", "h " * n) for i, n in enumerate(history)
    )
    talk = conversation(window, history=turns)
    for number, n in enumerate(found):
        talk.add_exchange(exchange(f"r{number}", n))
    messages = talk.messages([INTERNAL_SEARCH])
    assert size(messages) <= window
    if found:
        assert results(messages)[-1] == f"r{len(found) - 1} " * found[-1]
    assert [m.calls[0].id for m in messages if isinstance(m, CallMessage)] == [
        m.call_id for m in messages if isinstance(m, ToolResult)
    ]


@given(window=st.integers(min_value=90, max_value=400), length=st.integers(1, 60))
def test_a_summary_is_always_told_and_always_fits(window: int, length: int) -> None:
    opening = TurnStart(
        instructions=(),
        today=None,
        history=HISTORY,
        message="why?",
        files="",
        summary="word " * length,
    )
    try:
        told = Conversation(opening, window, words).messages(())
    except MessageTooLongError:
        return
    assert size(told) <= window
    asked, summary, *rest = told[1:]
    assert isinstance(asked, ChatMessage)
    assert (asked.role, asked.text) == ("user", SUM_UP)
    assert summary == said("assistant", "word " * length)
    assert rest[-1] == said("user", "why?")


def test_without_a_summary_nothing_stands_in_its_place() -> None:
    told = conversation(1_000, history=HISTORY).messages(())
    assert told[1:] == [*HISTORY, said("user", "why?")]
