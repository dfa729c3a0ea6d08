"""Code in answers: what has a role is marked, and the code stays what it is."""

from html import unescape

import nh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.web.code_highlighting import (
    MAX_ANSWER_CHARACTERS,
    MAX_BLOCK_CHARACTERS,
    CodeHighlighter,
)

PIECES = st.sampled_from(
    [
        "def ",
        "class A:",
        "\n",
        "\t",
        "  ",
        "'",
        '"',
        "/*",
        "*/",
        "//",
        "#",
        "<b>",
        "&",
        "1.5",
        "é",
        "\\",
        "`",
        "$x",
        "\r",
    ]
)


@pytest.mark.parametrize(
    ("language", "code", "html"),
    [
        (
            "python",
            "def f(x):\n    return x + 1  # one more\n",
            '<span class="code-keyword">def</span> <span class="code-name">f</span>(x):\n'
            '    <span class="code-keyword">return</span> x + <span class="code-number">1</span>'
            '  <span class="code-comment"># one more</span>\n',
        ),
        ("JSON", "[1]", '[<span class="code-number">1</span>]'),
        (
            "html",
            "<b>",
            '&lt;<span class="code-keyword">b</span>&gt;',
        ),
    ],
)
def test_words_of_code_are_marked_by_their_roles(language: str, code: str, html: str) -> None:
    assert CodeHighlighter().highlight(code, language) == html


@pytest.mark.parametrize(
    ("language", "code"),
    [("", "x = 1"), ("brainfuck", "+-"), ("python", "x" * (MAX_BLOCK_CHARACTERS + 1))],
)
def test_code_of_no_known_language_and_long_code_is_left_plain(language: str, code: str) -> None:
    assert CodeHighlighter().highlight(code, language) == ""


@given(st.sampled_from(["python", "js", "sql", "html", "yaml", "diff", "sh"]), st.lists(PIECES))
def test_marking_changes_no_character(language: str, pieces: list[str]) -> None:
    code = "".join(pieces).replace("\r", "")
    text = nh3.clean(CodeHighlighter().highlight(code, language), tags=set())
    assert unescape(text) == code


def test_of_an_answer_only_so_much_code_is_marked() -> None:
    highlighter = CodeHighlighter()
    code = "return " * (MAX_BLOCK_CHARACTERS // 7)
    marked = [bool(highlighter.highlight(code, "python")) for _ in range(5)]
    assert marked == [True] * (MAX_ANSWER_CHARACTERS // MAX_BLOCK_CHARACTERS) + [False] * 2
    assert highlighter.highlight("return", "python"), "a short block still fits"
