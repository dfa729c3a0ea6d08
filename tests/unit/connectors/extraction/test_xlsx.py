import re
import warnings
import zipfile
from datetime import UTC, datetime
from io import BytesIO

import openpyxl
import pytest

from connectors.extraction import xlsx as workbook_module
from connectors.extraction.result import ExtractionError, ExtractionResult
from connectors.extraction.xlsx import read_xlsx
from tests.support.files import Cell, saved, workbook


def outline(
    read: ExtractionResult,
) -> list[tuple[tuple[str, ...], tuple[int, int] | None, str, str]]:
    return [(one.place.heading_path, one.place.rows, one.kind, one.text) for one in read.sections]


def test_a_sheet_is_a_table_under_its_header() -> None:
    rows: list[list[Cell]] = [["City", "Rate", "From"]]
    rows += [["Bonn", 90, datetime(2026, 1, 5)], ["Köln", 100.5, None], [True, None, None]]
    read = read_xlsx(workbook({"Rates": rows, "Empty": [], "Notes": [["Ask first."]]}))
    assert outline(read) == [
        (
            ("Rates",),
            (1, 4),
            "table",
            "| City | Rate | From |\n| --- | --- | --- |\n| Bonn | 90 | 2026-01-05 |\n"
            "| Köln | 100.5 |  |\n| TRUE |  |  |",
        ),
        (("Notes",), (1, 1), "text", "Ask first."),
    ]
    assert [one.place.sheet for one in read.sections] == ["Rates", "Notes"]


def test_a_long_sheet_is_cut_and_each_block_repeats_the_header() -> None:
    rows: list[list[Cell]] = [["id", "name"]]
    rows.extend([n, f"x{n}"] for n in range(1, 121))
    blocks = read_xlsx(workbook({"s": rows})).sections
    assert [block.place.rows for block in blocks] == [(1, 51), (52, 101), (102, 121)]
    assert all(block.text.startswith("| id | name |") for block in blocks)


def test_tables_on_one_sheet_have_headers_and_captions_of_their_own() -> None:
    rows: list[list[Cell]] = [
        ["Rates per night"],
        ["City", "Rate"],
        ["Bonn", 90],
        [],
        ["Köln", 100],  # a gap inside the table
        [],
        ["Name", "Office"],  # words below numbers: a table of its own
        ["Ann", "Bonn"],
    ]
    assert outline(read_xlsx(workbook({"s": rows}))) == [
        (
            ("s", "Rates per night"),
            (2, 5),
            "table",
            "| City | Rate |\n| --- | --- |\n| Bonn | 90 |\n| Köln | 100 |",
        ),
        (("s",), (7, 8), "table", "| Name | Office |\n| --- | --- |\n| Ann | Bonn |"),
    ]


def test_percentages_are_read_as_they_are_shown() -> None:
    made = openpyxl.Workbook()
    sheet = made.worksheets[0]
    sheet.append(["what", "share"])
    sheet.append(["discount", 0.155])
    sheet["B2"].number_format = "0.0%"
    assert read_xlsx(saved(made)).sections[0].text.endswith("| discount | 15.5% |")


def test_properties() -> None:
    made = openpyxl.Workbook()
    made.worksheets[0].append(["x"])
    made.properties.title = "Rates 2026"
    made.properties.creator = "openpyxl"
    read = read_xlsx(saved(made))
    assert read.title == "Rates 2026"
    assert read.authors == ()
    assert read.updated_at is None or read.updated_at <= datetime.now(UTC)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (workbook({"s": []}), "no text"),
        (workbook({"s": [[None, "  "]]}), "no text"),
        (b"plain", "not a valid workbook"),
        (workbook({"s": [["x"]]})[:2000], "not a valid workbook"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, says: str) -> None:
    with pytest.raises(ExtractionError, match=says):
        read_xlsx(data)


def test_one_far_cell_is_read_and_endless_cells_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    made = openpyxl.Workbook()
    made.worksheets[0].cell(50_000, 5, "far away")
    (section,) = read_xlsx(saved(made)).sections
    assert section.place.rows == (50_000, 50_000)
    monkeypatch.setattr(workbook_module, "_MOST_CELLS", 49_999)
    with pytest.raises(ExtractionError, match="more than 49,999 cells"):
        read_xlsx(saved(made))


def test_a_warning_of_the_library_breaks_nothing_and_leaves_the_filters_as_they_were() -> None:
    data = without_styles(workbook({"s": [["x"]]}))
    with pytest.warns(UserWarning, match="no default style"):
        openpyxl.load_workbook(BytesIO(data), read_only=True).close()
    before = list(warnings.filters)
    assert read_xlsx(data).sections[0].text == "x"
    assert list(warnings.filters) == before


def without_styles(data: bytes) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as whole, zipfile.ZipFile(file, "w") as made:
        for name in whole.namelist():
            content = whole.read(name)
            made.writestr(name, re.sub(rb"<cellStyles.*?</cellStyles>", b"", content))
    return file.getvalue()
