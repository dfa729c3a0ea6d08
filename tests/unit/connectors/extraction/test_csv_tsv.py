import pytest

from connectors.extraction.csv_tsv import read_csv, read_tsv
from connectors.extraction.encoding import decode
from connectors.extraction.result import ExtractionError


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    text = "name,rate\nBonn,90\nKöln,100\n".replace(",", delimiter)
    (section,) = read_csv(text.encode()).sections
    assert section.kind == "table"
    assert section.text == "| name | rate |\n| --- | --- |\n| Bonn | 90 |\n| Köln | 100 |"
    assert section.place.rows == (1, 3)


def test_a_comma_inside_tabs_is_text() -> None:
    (section,) = read_tsv(b"a,b\tc\n1,2\t3\n").sections
    assert section.text.startswith("| a,b | c |")


def test_quoted_cells_hold_delimiters_and_newlines_and_spans_stay_true() -> None:
    data = 'name,note\n"Lee, Ann","two\nlines"\nBo,x\n'.encode("utf-16")
    (section,) = read_csv(data).sections
    assert section.text.split("\n")[2:] == ["| Lee, Ann | two lines |", "| Bo | x |"]
    assert section.place.span is not None
    assert section.place.span.of(decode(data)) == decode(data)


def test_a_long_table_repeats_its_header_and_each_block_knows_its_rows() -> None:
    data = "id,name\n" + "".join(f"{n},x{n}\n" for n in range(1, 121))
    blocks = read_csv(data.encode()).sections
    # 120 rows below the header: 50, 50 and 20
    assert [block.place.rows for block in blocks] == [(1, 51), (52, 101), (102, 121)]
    assert all(block.text.startswith("| id | name |") for block in blocks)
    span = blocks[1].place.span
    assert span is not None
    assert span.of(data).startswith("51,x51\n")
    assert span.of(data).endswith("100,x100\n")


def test_rows_of_different_width_keep_all_their_cells() -> None:
    (section,) = read_csv(b"a,b\n1,2,3\n4\n").sections
    assert section.text.split("\n") == [
        "| a | b |  |",
        "| --- | --- | --- |",
        "| 1 | 2 | 3 |",
        "| 4 |  |  |",
    ]


def test_text_without_any_delimiter_is_plain_text() -> None:
    (section,) = read_csv(b"one\ntwo\n").sections
    assert (section.kind, section.text) == ("text", "one\ntwo")


def test_blank_rows_alone_are_nothing() -> None:
    with pytest.raises(ExtractionError, match="blank"):
        read_csv(b",,\n,,\n")


def test_a_cell_of_a_million_characters_and_a_quote_that_never_ends_are_survived() -> None:
    assert len(read_csv(b"a,b\n" + b"x" * 1_000_000 + b",1\n").sections) == 1
    (section,) = read_csv(b'a,b\n1,"never\nends\n').sections
    assert section.text.endswith("| 1 | never ends |")
