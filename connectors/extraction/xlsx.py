"""Read workbooks (XLSX) sheet by sheet, in blocks of rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time
from io import BytesIO
from itertools import groupby

import openpyxl
from openpyxl.cell.cell import Cell, MergedCell
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.workbook import Workbook
from openpyxl.worksheet._read_only import ReadOnlyWorksheet

from connectors.batched import batched
from connectors.document import Place, Section
from connectors.extraction.markdown_tables import TableRow, split_table
from connectors.extraction.office_metadata import add_properties
from connectors.extraction.parser_guard import convert_parser_errors
from connectors.extraction.result import ExtractionError, ExtractionResult, SizeLimit, make_section
from connectors.extraction.zip_limits import check_zip_limits
from connectors.text_cleaning import to_one_line

_FORMAT = "workbook"
_LARGEST_PART = 500_000_000
_MOST_CELLS = 20_000_000
_MOST_CAPTION_LINES = 3
_LINES_A_BLOCK = 100


@dataclass(frozen=True, slots=True)
class _Row(TableRow):
    only_text: bool = True
    """Without numbers and dates: it may be a header."""

    def filled_columns(self) -> list[int]:
        return [i for i, text in enumerate(self.cells) if text]


def read_xlsx(data: bytes) -> ExtractionResult:
    """Make a section of each block of rows, as a table under the header of its part of the sheet.

    Empty rows divide a sheet where a new table starts; a few lines of one cell above a table are
    its heading. Formulas are read as the values saved with them.

    Raises:
        ExtractionError: the file is broken, protected, without text, or beyond a limit.
    """
    check_zip_limits(data, _FORMAT, _LARGEST_PART)
    began = datetime.now(UTC)
    with convert_parser_errors(_FORMAT, InvalidFileException):
        workbook = openpyxl.load_workbook(
            BytesIO(data), read_only=True, data_only=True, keep_links=False
        )
        try:
            sections = tuple(_iterate_sections(workbook))
        finally:
            workbook.close()
        if not sections:
            raise ExtractionError("the workbook contains no text")
        found, stated = ExtractionResult(sections=sections), workbook.properties
        return add_properties(found, stated, stated.creator, began)


def _iterate_sections(workbook: Workbook) -> Iterator[Section]:
    limit = SizeLimit(_MOST_CELLS, f"it has more than {_MOST_CELLS:,} cells")
    for sheet in workbook.worksheets:
        for part in _split_tables(_iterate_rows(sheet, limit)):
            yield from _make_sections(sheet.title, part)


def _iterate_rows(sheet: ReadOnlyWorksheet, limit: SizeLimit) -> Iterator[_Row]:
    # The dimensions stored in a file are often wrong.
    sheet.reset_dimensions()
    for number, cells in enumerate(sheet.rows, start=1):
        # Empty rows take time as well.
        limit.add(len(cells) + 1)
        yield _make_row(number, cells)


def _make_row(number: int, cells: Iterable[Cell | MergedCell]) -> _Row:
    values = list(cells)
    only_text = all(cell.value is None or isinstance(cell.value, str) for cell in values)
    texts = [_format_cell(cell) for cell in values]
    while texts and not texts[-1]:
        texts.pop()
    return _Row(number, texts, only_text=only_text)


def _format_cell(cell: Cell | MergedCell) -> str:
    match cell.value:
        case None:
            return ""
        case bool() as truth:
            return str(truth).upper()
        case int() | float() as number if "%" in (cell.number_format or ""):
            return f"{number * 100:.10g}%"
        case float() as number:
            return f"{number:.15g}"
        case datetime() as moment if moment.time() == time():
            return moment.date().isoformat()
        case other:
            return to_one_line(str(other))


def _split_tables(rows: Iterable[_Row]) -> Iterator[Iterator[_Row]]:
    """Split the rows of a sheet into tables, without empty rows."""
    numbered = groupby(_number_tables(rows), key=lambda pair: pair[0])
    return ((row for _, row in part) for _, part in numbered)


def _number_tables(rows: Iterable[_Row]) -> Iterator[tuple[int, _Row]]:
    """Yield each row with the number of its table.

    After an empty row a new table starts, unless the row looks like those before: it starts in the
    same column, and is not a row of text below rows with numbers.
    """
    part, apart, numbers, column = 0, False, False, -1
    for row in rows:
        if not (filled := row.filled_columns()):
            apart = True
            continue
        like = filled[0] == column and len(filled) > 1 and (not row.only_text or not numbers)
        if apart and not like:
            part, numbers = part + 1, False
        apart, column, numbers = False, filled[0], numbers or not row.only_text
        yield part, row


def _make_sections(sheet: str, rows: Iterator[_Row]) -> Iterator[Section]:
    lines: list[_Row] = []
    header = None
    for row in rows:
        if len(row.filled_columns()) > 1:
            header = row
            break
        lines.append(row)
    caption = ""
    if header is not None and len(lines) <= _MOST_CAPTION_LINES:
        caption = " ".join("".join(line.cells) for line in lines)
    else:
        yield from _make_text_sections(sheet, lines)
    if header is not None:
        place = Place(sheet=sheet, heading_path=(sheet, caption))
        yield from split_table(header, rows, place)


def _make_text_sections(sheet: str, lines: list[_Row]) -> Iterator[Section]:
    for block in batched(lines, _LINES_A_BLOCK):
        place = Place(sheet=sheet, heading_path=(sheet,), rows=(block[0].number, block[-1].number))
        yield make_section("\n".join("".join(line.cells) for line in block), place)
