from hypothesis import given
from hypothesis import strategies as st

from connectors.document import Place, Span
from connectors.extraction.markdown_tables import TableRow, format_grid, format_table, split_table


def test_rows_become_a_markdown_table() -> None:
    assert format_table(["a", "", "b|c"], [["1"], ["2", "", "3\n4"]]) == (
        "| a | b\\|c |\n| --- | --- |\n| 1 |  |\n| 2 | 3 4 |"
    )


def test_a_grid_without_text_is_no_table() -> None:
    assert format_grid([["", " "], []]) is None
    assert format_grid([[""], ["a", "b"]]) == "| a | b |\n| --- | --- |"


def row(number: int, *cells: str) -> TableRow:
    return TableRow(number, cells, Span(number * 10, number * 10 + 9))


def test_a_long_table_is_cut_into_blocks_under_the_same_header() -> None:
    rows = [row(number, str(number)) for number in range(2, 122)]
    blocks = list(split_table(row(1, "n"), rows, Place(sheet="s")))
    assert [block.place.rows for block in blocks] == [(1, 51), (52, 101), (102, 121)]
    assert blocks[1].place.span == Span(520, 1019)
    assert blocks[1].text.split("\n")[:3] == ["| n |", "| --- |", "| 52 |"]


def test_a_header_alone_is_a_table() -> None:
    (block,) = split_table(row(1, "n"), [], Place())
    assert (block.text, block.place.rows) == ("| n |\n| --- |", (1, 1))


def test_a_wide_header_is_not_repeated_over_few_rows() -> None:
    header = row(1, *["name"] * 10_000)
    blocks = list(split_table(header, [row(2, "x")] * 10_000, Place()))
    # a block holds at least four times its header: 4 * 50,000 characters against 2 a row
    assert len(blocks) == 1


@given(st.lists(st.lists(st.text("ab |\n", max_size=60), min_size=1, max_size=4), max_size=150))
def test_no_row_is_lost_or_doubled(cells: list[list[str]]) -> None:
    rows = [TableRow(number, line) for number, line in enumerate(cells, start=2)]
    blocks = list(split_table(TableRow(1, ["head"]), rows, Place()))
    ends = [block.place.rows for block in blocks]
    assert [number for pair in ends if pair for number in range(pair[0], pair[1] + 1)] == list(
        range(1, len(cells) + 2)
    )
    assert sum(len(block.text.split("\n")) - 2 for block in blocks) == len(cells)
