"""Sections as blocks, with a passage marked."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.web.document_blocks import Block, Paragraph, Piece, TableBlock, blocks
from connectors.document import Section, Span
from connectors.extraction import registry
from connectors.text_cleaning import replace_controls

_PROSE = st.text(alphabet="ab c\n\u202e漢", max_size=60)


def _pieces(shown: list[Block]) -> Iterator[Piece]:
    for block in shown:
        match block:
            case Paragraph(line=line):
                yield from line
            case TableBlock(head=head, rows=rows):
                for cell in [*head, *(cell for row in rows for cell in row)]:
                    yield from cell


def _visible(text: str) -> str:
    return "".join(text.split())


@given(_PROSE, st.data(), st.sampled_from([registry.TEXT, registry.PDF, registry.MARKDOWN]))
def test_no_character_is_lost_and_the_passage_is_what_is_marked(
    text: str, data: st.DataObject, media_type: str
) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    shown = list(_pieces(blocks(Section(text=text), media_type, Span(start, end))))
    assert _visible("".join(piece.text for piece in shown)) == _visible(replace_controls(text))
    marked = "".join(piece.text for piece in shown if piece.marked)
    assert _visible(marked) == _visible(replace_controls(text[start:end]))


def _told(text: str, media_type: str = registry.MARKDOWN) -> list[tuple[str, str]]:
    return [
        (block.kind, "".join(piece.text for piece in block.line))
        for block in blocks(Section(text=text), media_type)
        if isinstance(block, Paragraph)
    ]


def test_the_blocks_of_markdown() -> None:
    text = "One\ntwo\n\n- item\n  goes on\n1. first\n\n> said\n> so\n\n## H\ntext\n```py\na  b\n\n- c\n```\nend"
    assert _told(text) == [
        ("p", "One two"),
        ("li", "item goes on"),
        ("li", "first"),
        ("quote", "said so"),
        ("h", "H"),
        ("p", "text"),
        ("code", "a  b\n\n- c"),
        ("p", "end"),
    ]


def test_other_texts_keep_their_lines() -> None:
    assert _told("# One\n  two\n\n- item", registry.TEXT) == [
        ("p", "# One\n  two"),
        ("li", "item"),
    ]


def test_lines_of_a_page_that_were_broken_to_fit_flow() -> None:
    page = "Heading\nA line that is about as long as lines are here\nand goes on.\nNext"
    assert _told(page, registry.PDF) == [
        ("p", "Heading\nA line that is about as long as lines are here and goes on.\nNext")
    ]


def test_markup_within_a_line() -> None:
    text = "**b** *e* `c*d*` [x](https://x.example) [y](javascript:z) ![i](https://i.example/i.png)"
    (shown,) = blocks(Section(text=text), registry.MARKDOWN)
    assert isinstance(shown, Paragraph)
    styled = [(piece.text, piece.style, piece.href) for piece in shown.line if piece.text.strip()]
    assert styled == [
        ("b", "strong", None),
        ("e", "em", None),
        ("c*d*", "code", None),
        ("x", "", "https://x.example"),
        ("y", "", None),
        ("i", "", "https://i.example/i.png"),
    ]


def test_markup_goes_on_over_the_end_of_a_line() -> None:
    text = "> See **the\n> rules** in [our\n> hand book](https://x.example)\n> and [tips]({%\n> page '/a' %})."
    passage = Span(text.index("rules"), text.index("book"))
    (shown,) = blocks(Section(text=text), registry.MARKDOWN, passage)
    assert isinstance(shown, Paragraph)
    assert "".join(piece.text for piece in shown.line) == "See the rules in our hand book and tips."
    assert "".join(piece.text for piece in shown.line if piece.style) == "the rules"
    assert "".join(piece.text for piece in shown.line if piece.href) == "our hand book"
    assert "".join(piece.text for piece in shown.line if piece.marked) == "rules in our hand "


def test_a_table_with_its_head_and_escaped_cells() -> None:
    text = "| a | b |\n| --- | --- |\n| c \\| d | **e** |"
    (shown,) = blocks(Section(text=text, kind="table"), registry.XLSX, Span(24, 44))
    assert isinstance(shown, TableBlock)
    assert [[piece.text for piece in cell] for cell in shown.head] == [["a"], ["b"]]
    assert [[piece.text for piece in cell] for cell in shown.rows[0]] == [["c | d"], ["**e**"]]
    assert [piece.marked for cell in shown.rows[0] for piece in cell] == [True, True]
    assert not any(piece.marked for cell in shown.head for piece in cell)


@pytest.mark.parametrize("text", ["not a table", "| a | b |\nand a line"])
def test_a_table_that_is_none_is_shown_as_text(text: str) -> None:
    assert all(
        isinstance(block, Paragraph) for block in blocks(Section(text=text, kind="table"), "")
    )


def test_a_hostile_line_takes_linear_time() -> None:
    for unit in ("**a", "[a](", "`a", "| a \\", "> ", "*a ", "![[", "*a*\n", "[a\n", "[a](b\n"):
        assert blocks(Section(text=unit * 4_000), registry.MARKDOWN)
        assert blocks(Section(text="|" + unit * 4_000, kind="table"), registry.MARKDOWN)
