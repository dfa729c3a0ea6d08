"""Actions as models write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.research.agent.actions import (
    Action,
    Answer,
    Code,
    Place,
    Reflect,
    Search,
    Visit,
    read_action,
)
from backend.research.agent.judgement import read_judgement
from backend.research.events import ActionKind
from backend.research.model_calls import parse_object, read_texts
from backend.web_search.results import Freshness

EVERYWHERE = frozenset(Place)
ALL = frozenset(ActionKind)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    [
        "action",
        "queries",
        "query",
        "where",
        "freshness",
        "pages",
        "questions",
        "answer",
        "problem",
        "program",
    ]
)


@pytest.mark.parametrize(
    ("value", "action"),
    [
        ({"action": "search", "queries": ["a", " A ", "b  c", "d", "e"]}, Search(("a", "b c", "d"), EVERYWHERE)),
        ({"action": "Search", "query": "a", "where": "web"}, Search(("a",), frozenset({Place.WEB}))),
        ({"action": "search", "queries": ["a"], "where": "moon"}, Search(("a",), EVERYWHERE)),
        ({"action": "search", "query": "a", "freshness": " Month"}, Search(("a",), EVERYWHERE, Freshness.MONTH)),
        ({"action": "search", "query": "a", "freshness": ["day"]}, Search(("a",), EVERYWHERE)),
        ({"action": "search", "query": "a", "freshness": "decade"}, Search(("a",), EVERYWHERE)),
        ({"action": "search", "queries": []}, None),
        ({"action": "visit", "pages": [3, "[3]", "3.1", None]}, Visit(("3", "3.1"))),
        ({"action": "visit", "url": "https://a.example"}, Visit(("https://a.example",))),
        ({"action": "visit"}, None),
        ({"action": "reflect", "questions": [{"question": "Why?"}]}, Reflect(("Why?",))),
        ({"action": "reflect"}, Reflect(())),
        ({"action": "answer", "answer": " So [1]. "}, Answer("So [1].")),
        ({"action": "answer", "answer": ""}, None),
        ({"action": "code", "problem": "2+2", "program": "print(4)"}, Code("2+2", "print(4)")),
        ({"action": "code", "program": "print(4)"}, None),
        ({"action": "dance"}, None),
        ({"queries": ["a"]}, None),
        ([], None),
        (None, None),
    ],
)  # fmt: skip
def test_actions_are_read_however_loosely_they_are_written(
    value: object, action: Action | None
) -> None:
    assert read_action(value, ALL, EVERYWHERE) == action


def test_an_action_that_is_off_is_none() -> None:
    value = {"action": "search", "queries": ["a"]}
    assert read_action(value, ALL - {ActionKind.SEARCH}, EVERYWHERE) is None


def test_a_place_that_there_is_not_is_not_searched() -> None:
    value = {"action": "search", "queries": ["a"], "where": "web"}
    documents = frozenset({Place.DOCUMENTS})
    assert read_action(value, ALL, documents) == Search(("a",), documents)


@given(st.dictionaries(FIELDS, JSON | st.sampled_from(list(ActionKind))))
def test_whatever_a_model_writes_is_an_action_or_none(value: dict[str, Any]) -> None:
    action = read_action(value, ALL, EVERYWHERE)
    assert action is None or isinstance(action, Search | Visit | Reflect | Answer | Code)
    read_judgement(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('<think>{"b": 2}</think>So: ```json\n{"a": 1,}\n``` as asked.', {"a": 1}),
        ("nothing", None),
        ("}{", None),
        ('{"a": ', None),
    ],
)
def test_an_object_is_found_in_whatever_stands_around_it(text: str, value: object) -> None:
    assert parse_object(text) == value


@given(JSON)
def test_texts_are_lines_each_once(value: object) -> None:
    found = read_texts(value, 3, 4)
    assert len(found) <= 3
    assert all(one and len(one) <= 4 and one == " ".join(one.split()) for one in found)
    assert len({one.casefold() for one in found}) == len(found)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"definite": True, "fresh": True, "complete": True, "reason": "Fine."}, ""),
        ({"definite": False, "fresh": True, "complete": True, "reason": " It\ndepends. "}, "It is not definite. It depends."),
        ({"definite": False, "fresh": False, "complete": False}, "It is not definite and not fresh and not complete."),
    ],
)  # fmt: skip
def test_a_judgement_that_fails_has_its_reason(value: Any, fault: str) -> None:
    judged = read_judgement(value)
    assert judged is not None
    assert judged.fault == fault


@pytest.mark.parametrize("value", [{}, None, {"definite": "yes", "fresh": True, "complete": True}])
def test_what_is_no_judgement_is_none(value: object) -> None:
    assert read_judgement(value) is None
