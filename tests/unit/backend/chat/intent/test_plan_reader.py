"""Plans: a hundred written answers of models, and what holds for any text."""

import html
import string
import time
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.chat.intent.plan_reader import (
    MAX_QUESTION_CHARACTERS,
    MAX_QUESTIONS,
    MAX_REWRITE_CHARACTERS,
    plan_by_message,
    read_plan,
)
from backend.chat.intent.search_plan import (
    IntentRequest,
    LinkToRead,
    NotNeeded,
    Queries,
    Searches,
    SearchPlan,
    Side,
    SidePlan,
    Summary,
    SwitchedOff,
    plan_variants,
    web_queries,
)
from backend.search.models import VariantQuery
from tests.support.intent_examples import EXAMPLES, NO_KNOW, NOTHING, Example, know, web
from tests.support.sides import BOTH_SIDES


@pytest.mark.parametrize(
    "each", EXAMPLES, ids=[f"{one.language}-{n}" for n, one in enumerate(EXAMPLES)]
)
def test_the_plan_of_each_example_is_read(each: Example) -> None:
    assert read_plan(each.answer, each.request) == each.plan


def test_there_are_a_hundred_examples_in_five_languages() -> None:
    languages = Counter(one.language for one in EXAMPLES)
    assert len(EXAMPLES) >= 100
    assert {"en", "zh", "ja", "de", "fr", "es"} <= languages.keys()
    assert len({(one.message, one.answer) for one in EXAMPLES}) == len(EXAMPLES)


LINKS = (
    "https://a.example.com/1?x=1&y=2",
    "http://b.example.org/two",
    "https://zh.example/wiki/矿",
)
MESSAGES = (
    "How long is leave?",
    "Sum up https://a.example.com/1?x=1&y=2 and http://b.example.org/two.",
    "今天天气？https://zh.example/wiki/矿",
    'Read <url id="1" status="parsed" title="T">http://b.example.org/two</url> for me',
    "根据知识库，年假几天？",
    "Find it on the web, please",
    "Do not search the web: hello",
    " \u200b",
)
FRAGMENTS = (
    *("<websearch>", "</websearch>", "<knowledge>", "</knowledge>", "<question>", "</question>"),
    *("<rewrite>", "</rewrite>", "<links>", "</links>", '<url id="1" status="failed">', "</url>"),
    *("not_needed", "summarize", "```xml\n", "```", "<!--", "-->", "<![CDATA[", "]]>", "<think>"),
    *("</think>", "&lt;", "&amp;", "&#9;", "&#x0;", "&#xD800;", "&#99999999999;", "\0", "\ud800"),
    *("https://evil.example/leak?q=secret", *LINKS, "leave days", "年假", "\n- ", " "),
)
VALID = (
    web("leave law", "leave in Spain", links=LINKS) + know("How long is leave?", "leave days"),
    web("summarize", links=LINKS) + NO_KNOW,
    NOTHING,
)
requests = st.builds(
    IntentRequest,
    message=st.one_of(st.sampled_from(MESSAGES), st.text(max_size=80)),
    sides=st.sets(st.sampled_from(Side)).map(frozenset),
    context_links=st.sampled_from(((), (LinkToRead("https://given.example/c", "C"),))),
)
soup = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=12)), max_size=30)


def sides_of(plan: Searches) -> dict[Side, SidePlan]:
    return {Side.WEB: plan.web, Side.KNOWLEDGE: plan.knowledge}


def check_usable(plan: SearchPlan, request: IntentRequest) -> None:
    """What holds for a plan, whatever it was read from."""
    given = request.message + "".join(link.url for link in request.context_links)
    assert all(link.url.removeprefix("https://www.") in given for link in plan.links)
    assert len(plan.links) == len({link.url for link in plan.links}) <= 8
    if Side.WEB not in request.sides:
        assert plan.links == ()
    if isinstance(plan, Summary):
        assert plan.links
        assert Side.WEB in request.sides
        return
    for side, asked in sides_of(plan).items():
        assert isinstance(asked, SwitchedOff) == (side not in request.sides)
        if isinstance(asked, Queries):
            check_queries(asked)


def check_queries(asked: Queries) -> None:
    assert asked.message.strip()
    assert len(asked.questions) <= MAX_QUESTIONS
    for text in (asked.message, *asked.questions, asked.rewrite or "."):
        assert text == " ".join(text.split())
        assert text.isprintable() or not set(text) & {*map(chr, range(32)), "\x7f", "\ud800"}
        text.encode()
    assert all(0 < len(text) <= MAX_QUESTION_CHARACTERS for text in asked.questions)
    assert not {*map(str.lower, asked.questions)} & {"not_needed", "summarize", "not needed"}
    assert len(asked.rewrite or "") <= MAX_REWRITE_CHARACTERS
    assert web_queries(asked)
    assert len(plan_variants(asked)) == len(asked.questions) + bool(asked.rewrite)


@given(st.one_of(st.text(), soup.map("".join)), requests)
@example(
    "&#" + "9" * 5_000 + ";<question>&#" + "9" * 5_000 + ";</question>",
    IntentRequest(message="a", sides=BOTH_SIDES),
)
@example("<question>" * 3_000, IntentRequest(message="a", sides=BOTH_SIDES))
def test_any_text_gives_a_usable_plan(answer: str, request: IntentRequest) -> None:
    check_usable(read_plan(answer, request), request)
    check_usable(plan_by_message(request), request)


@st.composite
def mutilated(draw: st.DrawFn) -> str:
    """A valid answer that lost, doubled or gained pieces."""
    text = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 4))):
        start, end = sorted(draw(st.integers(0, len(text))) for _ in range(2))
        put = draw(st.sampled_from(["", text[start:end] * 2, *FRAGMENTS]))
        text = text[:start] + put + text[end:]
    return text


@given(mutilated(), requests)
def test_any_mutilation_of_an_answer_gives_a_usable_plan(
    answer: str, request: IntentRequest
) -> None:
    check_usable(read_plan(answer, request), request)


@given(st.one_of(mutilated(), soup.map("".join)), requests)
def test_a_plan_that_is_written_down_is_read_as_it_was(answer: str, request: IntentRequest) -> None:
    plan = read_plan(answer, request)
    assert read_plan(write_plan(plan), request) == plan


def write_plan(plan: SearchPlan) -> str:
    links = "".join(f"<links>{html.escape(link.url)}</links>" for link in plan.links)
    if isinstance(plan, Summary):
        return f"<websearch><question>summarize</question>{links}</websearch>"
    blocks = {Side.WEB: "websearch", Side.KNOWLEDGE: "knowledge"}
    written = [
        f"<{blocks[side]}>{write_side(one)}</{blocks[side]}>"
        for side, one in sides_of(plan).items()
    ]
    return "".join(written) + links


def write_side(plan: SidePlan) -> str:
    match plan:
        case Queries(_, questions, rewrite):
            asked = "".join(f"<question>{html.escape(one)}</question>" for one in questions)
            return asked + (f"<rewrite>{html.escape(rewrite)}</rewrite>" if rewrite else "")
        case NotNeeded():
            return "<question>not_needed</question>"
        case SwitchedOff():
            return ""


def test_a_rewrite_weighs_more_than_each_question() -> None:
    plan = Queries("and in Japan?", ("leave Japan", "law"), "How long is leave in Japan?")
    assert plan_variants(plan) == [
        VariantQuery("semantic", "How long is leave in Japan?", 1.75),
        VariantQuery("llm", "leave Japan", 1.5),
        VariantQuery("llm", "law", 1.5),
    ]


def test_search_engines_are_asked_each_text_once_and_no_endless_one() -> None:
    plan = Queries("leave law", ("law in Spain", "Leave Law"))
    assert web_queries(plan) == ("leave law", "law in Spain")
    assert web_queries(Queries("a" * 900)) == ("a" * 400,)


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    "unit",
    [
        "<question>",
        "<!--",
        "<url ",
        "&#",
        "<think>",
        "</think>",
        "https://",
        "https://a.b/)",
        '<url a="',
        "「根据",
        "not ",
        "search ",
    ],
)
def test_time_is_linear(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        started = time.process_time()
        read_plan(text, IntentRequest(message=text, sides=BOTH_SIDES))
        return time.process_time() - started

    small = min(seconds(5_000) for _ in range(3))
    large = min(seconds(40_000) for _ in range(2))
    # Eight times the text: linear is a ratio of 8, quadratic one of 64.
    assert large < 30 * small + 0.01


def test_no_entity_is_expanded_and_no_file_is_read() -> None:
    bomb = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    answer = (
        f'<!DOCTYPE x [<!ENTITY l0 "lol">{bomb}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
        "<websearch><question>laws &l9; &f;</question></websearch>"
    )
    plan = read_plan(answer, IntentRequest(message="laws", sides=BOTH_SIDES))
    assert isinstance(plan, Searches)
    assert plan.web == Queries("laws", ("laws &l9; &f;",))


def test_a_message_of_printable_marks_is_searched_as_it_stands() -> None:
    for mark in string.punctuation:
        plan = plan_by_message(IntentRequest(message=f"{mark} leave", sides=BOTH_SIDES))
        assert isinstance(plan, Searches)
        assert plan.web == Queries(f"{mark} leave")
