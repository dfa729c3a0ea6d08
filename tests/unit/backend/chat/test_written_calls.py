"""Tool calls that are written as text: run or dropped, never shown."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.agent.tool_calls import SearchCall, parse_call
from backend.chat.agent.tool_definitions import INTERNAL_SEARCH
from backend.chat.written_calls import LONGEST_GUESS, WrittenCallSplitter

KNOWN = (INTERNAL_SEARCH.name,)
CALL = '{"name": "internal_search", "arguments": {"queries": ["x"]}}'
OTHER = '{"name": "web_search", "arguments": {}}'


def split(*pieces: str) -> tuple[str, list[str]]:
    """The text, and what would be searched; for a call of another tool, its name."""
    splitter = WrittenCallSplitter(KNOWN)
    text = "".join([*map(splitter.feed, pieces), splitter.end()])
    parsed = [parse_call(call, KNOWN) for call in splitter.calls]
    return text, [
        ", ".join(each.queries) if isinstance(each, SearchCall) else each.call.name
        for each in parsed
    ]


@pytest.mark.parametrize(
    ("written", "text", "calls"),
    [
        (f"<tool_call>{CALL}</tool_call>", "", ["x"]),
        (f"So.\n<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{CALL}", "So.\n", ["x", "x"]),
        (f"<tool_call>{OTHER}</tool_call> 25 [1].", "25 [1].", ["web_search"]),
        ('<tool_call>{"name": "internal_search", "argu', "", []),
        ("<tool_call>[1]</tool_call>", "", []),
        (
            '<function_calls><invoke name="internal_search"><parameter name="queries">'
            '["x", "y"]</parameter></invoke></function_calls> 25',
            "25",
            ["x, y"],
        ),
        ('<a:invoke name="internal_search"><a:parameter name="query">x', "", ["x"]),
        (f'<invoke name="internal_search">{json.dumps({"query": "x"})}</invoke>', "", ["x"]),
        (
            "<tool_call><function=internal_search><parameter=queries>x</parameter></function>"
            "</tool_call>",
            "",
            ["x"],
        ),
        (f"[TOOL_CALLS][{CALL}]", "", ["x"]),
        (f"<|python_tag|>{CALL}", "", ["x"]),
        (CALL, "", ["x"]),
        (f"I look: {CALL}\nand more", "I look: and more", ["x"]),
        (f"Sure.\n```json\n[{CALL}, {CALL}]\n```\nDone.", "Sure.\nDone.", ["x", "x"]),
        ('{"type": "function", "function": ' + CALL + "}", "", ["x"]),
        (json.dumps({"tool_calls": [{"function": json.loads(CALL)}]}), "", ["x"]),
        ('{"arguments": {"queries": ["x",]}, "name": "functions.internal_search"}', "", ["x"]),
        ('{"tool": "internal_search", "args": "{\\"query\\": \\"x\\"}"}', "", ["x"]),
        ('<tool_response>{"results": []}</tool_response>25 [1].', "25 [1].", []),
    ],
)
def test_calls_are_taken_out_of_the_text(written: str, text: str, calls: list[str]) -> None:
    assert split(written) == (text, calls) == split(*written)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Ann", "arguments": 3} is a record',
        OTHER,
        '```json\n{"type": "Point", "coordinates": [1, 2]}\n```\n',
        '{"type": "Point", ' + " " * LONGEST_GUESS + "never closed",
        '{"type": "Point"',
        f"```xml\n<tool_call>{OTHER}</tool_call>\n```\n",
        "Use `<tool_call>{}` or `<invoke name='x'>{` here.",
        "The <tool_call> tag holds JSON.",
        "a < b, [0, 1), {x}, `y`, ``z``\n```\n[]\n```",
        "```",
        "<tool_call",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert split(text) == (text, []) == split(*text)


PIECES = [
    *(
        "<tool_call>",
        "</tool_call>",
        "<invoke name='internal_search'>",
        "</invoke>",
        "[TOOL_CALLS]",
    ),
    *(
        "<parameter name='query'>",
        "</parameter>",
        "[",
        "]",
        "{",
        "}",
        "`",
        "```",
        "```json\n",
        "\n",
    ),
    *(CALL, OTHER, '{"type": ', '"', ",", " ", "text", "<", ">", "<think>"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=14), st.data())
def test_cuts_make_no_difference(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=9)))
    assert split(*(text[i:j] for i, j in itertools.pairwise([0, *cuts, len(text)]))) == split(text)


def test_a_brace_in_a_string_that_has_not_arrived_whole_ends_no_call() -> None:
    text = f'{{"type": "<invoke name=\'internal_search\'>{CALL},<"'
    for cut in range(len(text)):
        assert split(text[:cut], text[cut:]) == split(text)


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_call_of_a_known_tool_is_shown(text: str) -> None:
    assert CALL not in split(text)[0]


@given(st.lists(st.sampled_from(["word ", "[1]", "[", "0, 1)", "`a`", "< b", "\n"]), max_size=30))
def test_ordinary_text_is_not_held_back(pieces: list[str]) -> None:
    splitter = WrittenCallSplitter(KNOWN)
    actual = ""
    for at in range(len(pieces)):
        actual += splitter.feed(pieces[at])
        held = "".join(pieces[: at + 1]).removeprefix(actual)
        assert held.strip() in {"", "["} or held.startswith("`")
