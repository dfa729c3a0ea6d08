"""What is a citation marker, and what only looks like one."""

import re
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.citations import marker_parser
from backend.chat.citations.marker_parser import (
    LONGEST_CODE,
    LONGEST_LABEL,
    MAX_HELD,
    Marker,
    MarkerScanner,
    split_markers,
)

NASTY = [
    "[",
    "]",
    "[[",
    "]]",
    "(",
    ")",
    "`",
    "``",
    "```",
    "````",
    "~~~",
    "!",
    "\\",
    "<",
    ">",
    ":",
    ";",
    ",",
    "-",
    "–",
    "^",
    "|",
    "*",
    "#",
    ">",
    "\n",
    "\n\n",
    "\t",
    "\r\n",
    "1",
    "2",
    "12",
    "99",
    "0",
    "01",
    "１",
    "【",
    "】",
    "［",
    "］",
    "†",
    "[1]",
    "[2]",
    "[1,2]",
    "[1-3]",
    "[3-1]",
    "[[1]]",
    "[[1,2]]",
    "【1】",
    "【1†source】",
    "［1］",
    "![1]",
    "[^1]",
    "[a]",
    "[a][1]",
    "[1][a]",
    "(x)",
    "(http://x)",
    "[1](x)",
    "[1]:",
    "-",
    "有給休暇",
    "。",
    "ﷺ",
    "👩\u200d👩\u200d👧",
    "<http://x/[1]>",
    "text.",
]
PIECES = [*NASTY, " ", "    ", "\n    ", "\n```py\n", "\n```\n", "\n- ", "\n\n", "\n1. "]

texts = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)


@st.composite
def cut_texts(draw: st.DrawFn) -> list[str]:
    text = draw(texts)
    places = st.integers(0, len(text))
    cuts = sorted(draw(st.lists(places, max_size=12)))
    return [text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def markers(text: str) -> list[tuple[int, ...]]:
    return [piece.numbers for piece in split_markers(text) if isinstance(piece, Marker)]


def fed(tokens: list[str]) -> list[str | Marker]:
    scanner = MarkerScanner()
    pieces = [piece for token in tokens for piece in scanner.feed(token)]
    return [*pieces, *scanner.end()]


def joined(pieces: list[str | Marker]) -> list[str | Marker]:
    out: list[str | Marker] = []
    for piece in pieces:
        if isinstance(piece, str) and out and isinstance(out[-1], str):
            out[-1] += piece
        else:
            out.append(piece)
    return out


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("See [1].", [(1,)]),
        ("Text[1] x", [(1,)]),
        ("[1][2] [3]", [(1,), (2,), (3,)]),
        ("[1, 2]", [(1, 2)]),
        ("[1,2]", [(1, 2)]),
        ("[1 ,2]", [(1, 2)]),
        ("[ 1 ]", [(1,)]),
        ("[1;2]", [(1, 2)]),
        ("[1; 3, 2, 1]", [(1, 3, 2)]),
        ("[1-3]", [(1, 2, 3)]),
        ("[1–3, 7]", [(1, 2, 3, 7)]),
        ("[[1]]", [(1,)]),
        ("[[1, 2]]", [(1, 2)]),
        ("【1】", [(1,)]),
        ("【1、2】", [(1, 2)]),
        ("【4†source】", [(4,)]),
        ("［1］と［２］", [(1,), (2,)]),
        ("Great![1]", [(1,)]),
        ("[^1][2]", [(2,)]),
        ("- [x] done [1]", [(1,)]),
        ("[see [1] there]", [(1,)]),
        ("[1] (see below)", [(1,)]),
        ("[1](see below)", [(1,)]),
        ("[[1]](http://x)", [(1,)]),
        ("[[1]](<a b> 'title')", [(1,)]),
        ("![[1]](x.png)", [(1,)]),
        ("[1][2](u)", [(1,), (2,)]),
        ("【1】[2](u)[3](v)", [(1,), (2,), (3,)]),
        ("[1] [2](u)", [(1,)]),
        ("[1][Handbook](u)", [(1,)]),
        ("[1][see note]", [(1,)]),
        ("[1][]", [(1,)]),
        ("[1]: Parental leave", [(1,)]),
        ("[1]: http://x/", [(1,)]),
        ("[ 1 ]: http://x/", [(1,)]),
        ("[1", []),
        ("[1)", []),
        ("[0]", []),
        ("[01]", []),
        ("[1234567]", []),
        ("[3-1]", []),
        ("[1-1000]", []),
        ("[1 2]", []),
        ("[1,]", []),
        ("[]", []),
        ("[1\n]", []),
        ("【1]", []),
    ],
)
def test_the_ways_of_citing(text: str, numbers: list[tuple[int, ...]]) -> None:
    assert markers(text) == numbers


@pytest.mark.parametrize(
    "text",
    [
        "use `a[1]` here",
        "``a ` [1]``",
        "`over\ntwo lines [1]`",
        "See [1](http://x).",
        "[1](<a b>) [1](x 'title') [1](a(b)c)",
        "![1](x.png) ![alt [1] text](x.png)",
        "[the [1] one](http://x)",
        "[the handbook][1]",
        "[the handbook][] [1](u)[2](v)",
        "[handbook]: http://x/[2]",
        "[^1]: a footnote",
        "<https://x/[1]>",
        r"\[1\] and \`",
        "```\nx[1]\n```",
        "```py\nx[1]\n``\n[2]\n````\n",
        "~~~\n[1]\n```\n~~~",
        "> ```\n> [1]\n> ```",
        "- ```\n  [1]\n  ```",
        "````\n```\n[1]\n```\n````",
        "Example:\n\n    x[1]\n    y[2]\n",
        "```\nnever closed [1]",
    ],
)
def test_what_only_looks_like_citing(text: str) -> None:
    assert markers(text) == []
    assert split_markers(text) == [text]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("fact [1]\n```\nx[2]\n```\nfact [3]", [(1,), (3,)]),
        ("`a[1]` then [2]", [(2,)]),
        ("a stray ` here [1]", [(1,)]),
        ("a stray ` here\n\nand ` there [1]", [(1,)]),
        ("a stray ` here\n```\n`[1]\n```\n[2]", [(2,)]),
        ("```x[1]``` is inline, [2] is not", [(2,)]),
        ("a stray ` here\n- [1] `", [(1,)]),
        ("a stray ` here\n> [1] `", [(1,)]),
        ("a stray ` here\n# [1] `", [(1,)]),
        ("a stray ` here\n| [1] ` |", [(1,)]),
        ("- a list\n\n    goes on [1]", [(1,)]),
        ("a line\n    goes on [1]", [(1,)]),
        ("- a list\n\nthen text\n\n    code[1]", []),
        ("<b>[1]</b> 1 < 2 [3]", [(1,), (3,)]),
        ("| a [1] | b [2] |", [(1,), (2,)]),
        ("a\\\\[1]", [(1,)]),
        ("[text](http://x)[1]", [(1,)]),
        ("[[[[1]]]]", [(1,)]),
    ],
)
def test_what_stands_beside_code_and_links_still_cites(
    text: str, numbers: list[tuple[int, ...]]
) -> None:
    assert markers(text) == numbers


@given(cut_texts())
def test_nothing_is_lost_and_cuts_make_no_difference(tokens: list[str]) -> None:
    text = "".join(tokens)
    pieces = fed(tokens)
    assert "".join(piece.text if isinstance(piece, Marker) else piece for piece in pieces) == text
    assert joined(pieces) == split_markers(text) == joined(fed(list(text)))


@given(texts)
def test_the_fast_path_decides_as_the_grammar_does(text: str) -> None:
    never = re.compile(r"(?!)")
    with patch.multiple(
        marker_parser, _PLAIN_LINE=never, _PLAIN_MARKER=never, _PLAIN_MARKER_BEGINNING=never
    ):
        slowly = split_markers(text)
    assert split_markers(text) == slowly


@given(st.text(alphabet="[]()`\\<1,-^: \n>~!a", max_size=60))
def test_character_by_character_is_as_good_as_whole(text: str) -> None:
    assert joined(fed(list(text))) == split_markers(text)


@pytest.mark.parametrize(
    "opening", ["[1, ", "[a](", "`", "【1†", "<http:", "```", "  ", "1", "[" * 9]
)
@pytest.mark.parametrize("filler", ["1", "a", " ", "1, ", "[", "`", "(", "\\"])
def test_no_more_is_held_back_than_stated(opening: str, filler: str) -> None:
    scanner = MarkerScanner()
    fed_length = actual = 0
    for token in [opening, *[filler * 50] * 60]:
        fed_length += len(token)
        actual += sum(len(p) if isinstance(p, str) else len(p.text) for p in scanner.feed(token))
        assert fed_length - actual <= MAX_HELD


@pytest.mark.parametrize(
    "text",
    [
        "interval [0, 1) and so on, to the end of the line",
        "see [the handbook for all that is said there of leave",
        "Press the ` key and go on",
        "1 < 2 and <http:x so on",
        "``` and then\n> - [x] a line \\ with a \\[ in it\n   [x]: y",
        "[a link](http://x/ that is never closed",
    ],
)
def test_text_that_holds_no_marker_is_never_held_back(text: str) -> None:
    scanner = MarkerScanner()
    actual = ""
    for at, character in enumerate(text, 1):
        actual += "".join(map(str, scanner.feed(character)))
        assert actual in {text[:at], text[:at].removesuffix("[")}


@given(texts)
def test_only_what_may_become_a_marker_is_held_back(text: str) -> None:
    scanner = MarkerScanner()
    actual = 0
    for at, character in enumerate(text, 1):
        actual += sum(
            len(p) if isinstance(p, str) else len(p.text) for p in scanner.feed(character)
        )
        held = text[actual:at]
        assert not held or re.match(r"[\[【［]\[?[ \t]*([1-9１-９]|$)", held)


@pytest.mark.parametrize("limit", [MAX_HELD, LONGEST_CODE, LONGEST_LABEL])
@pytest.mark.parametrize("beyond", [-40, -10, -1, 0, 50])
@pytest.mark.parametrize(
    "form", ["[{}[1] x](y) [2]", "`{}[1]` [2]", "[x]({}[1]) [2]", "[1]({}) [2]"]
)
def test_cuts_make_no_difference_where_a_limit_is_reached(
    limit: int, beyond: int, form: str
) -> None:
    text = form.format("a" * (limit + beyond))
    assert joined(fed(list(text))) == split_markers(text)
    assert markers(text)[-1] == (2,)


@pytest.mark.parametrize("text", ["<[1]", "【【1】", "［【1】", "\\a[1]", "<【1】"])
def test_a_marker_right_after_a_bracket_that_begins_nothing_counts(text: str) -> None:
    assert markers(text) == [(1,)]


def test_a_line_that_begins_with_a_token_of_its_own_is_read() -> None:
    assert Marker("[1]", (1,)) in fed(["word", "\n[1]"])
