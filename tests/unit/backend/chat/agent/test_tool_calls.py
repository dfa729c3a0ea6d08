"""Calls are read however they are written, and each can be sent back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.agent.known_pages import KnownPages, OpenablePage, RefusedPage
from backend.chat.agent.read_texts import ReadTexts
from backend.chat.agent.tool_calls import (
    MAX_ADDRESS_CHARACTERS,
    MAX_PAGES,
    TOOL_NAMES,
    InvalidCall,
    OpenCall,
    WebSearchCall,
    parse_call,
    to_sendable_call,
)
from backend.chat.llm.messages import ToolCall
from backend.chat.turn import ChatTurn
from backend.search.models import DocumentNumbers
from backend.store.accounts.people import NOBODY
from backend.web_search.search import LONGEST_QUERY
from indexing.runtime.deadline import Deadline
from tests.support.agent_world import ANN

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["query", "pages", "url", "x"]), inner)
    ),
    max_leaves=8,
)


def opened(arguments: object) -> tuple[str, ...]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    parsed = parse_call(ToolCall("a", "open_url", text), TOOL_NAMES)
    assert isinstance(parsed, OpenCall)
    return parsed.pages


@pytest.mark.parametrize(
    ("arguments", "pages"),
    [
        ({"pages": ["1", "3.1"]}, ("1", "3.1")),
        ({"pages": [1, 3.1]}, ("1", "3.1")),
        ({"pages": "[1], [3.1]"}, ("1", "3.1")),
        ({"pages": "1; 2 3"}, ("1", "2", "3")),
        ({"page": 2}, ("2",)),
        ({"urls": ["https://a.example/1,2"]}, ("https://a.example/1,2",)),
        ({"pages": ["1", "1", " 1 "]}, ("1",)),
        ('["https://a.example/",]', ("https://a.example/",)),
        ({"pages": [{"url": "https://a.example/"}, True, None]}, ("https://a.example/",)),
    ],
)
def test_pages_are_numbers_and_addresses(arguments: object, pages: tuple[str, ...]) -> None:
    assert opened(arguments) == pages


def test_of_many_pages_the_first_are_kept_and_long_ones_cut() -> None:
    assert len(opened({"pages": [f"https://a.example/{n}" for n in range(99)]})) == MAX_PAGES
    [long] = opened({"pages": ["https://a.example/" + "a" * 9_000]})
    assert len(long) == MAX_ADDRESS_CHARACTERS


@given(st.sampled_from([*TOOL_NAMES, "else"]), st.text() | VALUES.map(json.dumps))
def test_whatever_a_model_writes_can_be_sent_back(name: str, arguments: str) -> None:
    parsed = parse_call(ToolCall("a", name, arguments), TOOL_NAMES)
    sent: Any = json.loads(to_sendable_call(parsed).arguments)
    assert isinstance(sent, dict)
    assert isinstance(parsed, InvalidCall) == (sent == {})
    if isinstance(parsed, WebSearchCall):
        assert len(parsed.query) <= LONGEST_QUERY
        assert parsed.query == " ".join(parsed.query.split())


@given(st.text() | st.from_regex(r"https?://.*") | st.from_regex(r"\[?\d+(\.\d)?\]?"))
def test_only_what_somebody_has_named_is_opened(reference: str) -> None:
    message = "What does https://law.example/leave?year=2026 say?"
    turn = ChatTurn(message=message, readers=ANN, deadline=Deadline.after(5), person_id=NOBODY)
    pages = KnownPages(ReadTexts(turn, ()), DocumentNumbers())
    found = pages.check(reference)
    assert isinstance(found, RefusedPage)
    assert pages.check("http://www.law.example/leave/?year=2026#x") == OpenablePage(
        "https://law.example/leave?year=2026"
    )
