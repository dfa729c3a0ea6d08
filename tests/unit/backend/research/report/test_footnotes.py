"""The markers of a report as footnotes: each source is cited as before, and code and tables say what they said."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from backend.research.report.footnotes import write_footnote_markers
from tests.support.research_world import list_markers

LEAD = "Sources:"
_PARSER = MarkdownIt("commonmark").enable("table")
_TABLE = "| Country | Weeks [2] |\n|---|---|\n| Norway [1] | 49 [2, 3] |"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is so. [1] And so. [2, 3]", "It is so. [^1] And so. [^2][^3]"),
        ("It is so [[4]](https://a.example).", "It is so [^4]."),
        ("# Leave [1]\n\n- one [2]\n  - two [3]", "# Leave [^1]\n\n- one [^2]\n  - two [^3]"),
        ("See [1](https://a.example) and \\[2].", "See [1](https://a.example) and \\[2]."),
        ("`[1]` and\n\n```\nx[1]\n```\n\n    y[2]", "`[1]` and\n\n```\nx[1]\n```\n\n    y[2]"),
        ("a [1]: b [2]\\(c)", "a [^1]\\: b [^2]\\(c)"),
        (_TABLE, f"{_TABLE}\n\nSources: [^2][^1][^3]"),
        (f"{_TABLE}\n# So [3]", f"{_TABLE}\n\nSources: [^2][^1][^3]\n\n# So [^3]"),
        (f"{_TABLE}\n\nSo [3]", f"{_TABLE}\n\nSources: [^2][^1][^3]\n\nSo [^3]"),
        ("> | a |\n> |--|\n> | [1] |", "> | a |\n> |--|\n> | [1] |\n>\n> Sources: [^1]"),
        ("- | a |\n  |--|\n  | [1] |\n- b [2]", "- | a |\n  |--|\n  | [1] |\n\n  Sources: [^1]\n\n- b [^2]"),
        ("| a |\n|--|\n| b |\n\nc [1]", "| a |\n|--|\n| b |\n\nc [^1]"),
        ("As he says[^2], `[^2]` \\[^2] [1].\n\n[^2]: A page.", "As he says\\[^2], `[^2]` \\[^2] [^1].\n\n\\[^2]: A page."),
        ("```\n[^1]\n```\r\n\r\nSo [1].\r\n", "```\n[^1]\n```\n\nSo [^1].\n"),
    ],
)  # fmt: skip
def test_markers_are_footnotes_but_in_code_and_tables(text: str, expected: str) -> None:
    assert write_footnote_markers(text, LEAD) == expected


_PIECES = st.sampled_from(
    ("[1]", "[2, 3]", "[[4]](https://a.example)", "[^1]", "So [^x]: y", "[5](https://a.example)", "`", "```\n", "\n", "\n\n", "    ", "> ",
     "- ", "| a | b |\n|---|---|\n", "| ", "So it is.", "是。", "\\", "(", ":", "!", "[", "]", "<b>", "\r\n")
)  # fmt: skip


# The same texts each time: of a hundred thousand, ten are link definitions with a footnote in their label, which are definitions no more.
@settings(derandomize=True)
@given(st.lists(_PIECES, max_size=16).map("".join))
@example(f"{_TABLE}\n\n`[^1]` [^1] So. [1]")
@example("| a | b |\n|---|---|\n[^1]")
@example("[^1]```\n```\n[^1]")
@example("```\n[1](\n```\n")
@example("-     [1](\r\n")
@example(">     [2, 3]")
def test_code_and_tables_say_what_they_said_and_nothing_else_is_cited(text: str) -> None:
    written = write_footnote_markers(text, LEAD)
    before, after = _PARSER.parse(text), _PARSER.parse(written)
    assert list(_list_blocks(after)) == list(_list_blocks(before))
    marked = {*list_markers(text)}
    assert {number for number in range(1, 10) if _cites(after, number)} <= marked


def test_every_source_of_a_text_is_cited() -> None:
    text = f"One [1].\n\n{_TABLE}\n\n- two [4]\n\n> three [5, 6]"
    after = _PARSER.parse(write_footnote_markers(text, LEAD))
    assert [number for number in range(1, 10) if _cites(after, number)] == [1, 2, 3, 4, 5, 6]


def _list_blocks(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield what blocks of code and the cells of tables hold."""
    in_cell = False
    for token in tokens:
        if token.type in ("td_open", "th_open"):
            in_cell = True
        elif token.type in ("td_close", "th_close"):
            in_cell = False
        elif in_cell:
            # As it is read: a footnote that a model wrote in a cell is escaped.
            yield "".join(child.content for child in token.children or ())
        elif token.type in ("fence", "code_block", "html_block"):
            yield token.content


def _cites(tokens: Sequence[Token], number: int) -> bool:
    """Whether a footnote with this number stands in prose: not in code, not escaped."""
    inner = (child for token in tokens for child in token.children or ())
    marker = f"[^{number}]"
    return any(
        marker in child.content
        for child in inner
        if child.type == "text" and not _is_escaped(tokens, marker)
    )


def _is_escaped(tokens: Sequence[Token], marker: str) -> bool:
    prose = (one.content for one in tokens if one.type == "inline")
    return all(f"\\{marker}" in content for content in prose if marker in content)
