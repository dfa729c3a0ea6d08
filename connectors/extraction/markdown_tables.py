"""Rows of cells to Markdown tables."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from connectors.document import Place, Section, Span
from connectors.extraction.result import make_section
from connectors.text_cleaning import to_one_line

Row: TypeAlias = Sequence[str]

_ROWS_A_BLOCK = 50
_CHARACTERS_A_BLOCK = 4000
_LONGEST_USUAL_HEADER = 1000
_WIDEST_FILLED = 100
_LONGEST_LABEL = 200


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table that may have a million of them."""

    number: int
    """In its sheet or file, counted from 1."""
    cells: Row
    span: Span | None = None
    """In the decoded file, where that is a text."""


def format_table(header: Row, rows: Sequence[Row]) -> str:
    """A Markdown table without the columns that are empty throughout."""
    lines = [[_cell(text) for text in line] for line in (header, *rows)]
    kept = sorted({i for line in lines for i, text in enumerate(line) if text})
    # Short rows are filled up for the eye; a table of a million columns is not for the eye.
    filled = len(kept) if len(kept) <= _WIDEST_FILLED else 0
    written = [_line(_chosen(line, kept), filled) for line in lines]
    return "\n".join([written[0], _line(["---"] * len(kept), 0), *written[1:]])


def _chosen(line: Row, kept: Sequence[int]) -> list[str]:
    return [line[i] for i in kept[: bisect_left(kept, len(line))]]


def limit_repeated_text(text: str) -> str:
    """What of a cell over several rows is repeated in those below the first: a label is, a long
    text is not, or a small file could grow without bounds."""
    return text if len(text) <= _LONGEST_LABEL else ""


def format_grid(grid: Sequence[Row]) -> str | None:
    """The table whose first row is its header; None when it holds no text."""
    filled = [row for row in grid if any(map(str.strip, row))]
    return format_table(filled[0], filled[1:]) if filled else None


def split_table(header: TableRow, rows: Iterable[TableRow], place: Place) -> Iterator[Section]:
    """Cut a long table into sections of its rows, each a table under the same header.

    A block is never small beside its header, so that repeating it adds a quarter at most. `place`
    says where the table is; each section adds its rows and their span.
    """
    heading = _length(header)
    most_characters = max(_CHARACTERS_A_BLOCK, 4 * heading)
    most_rows = _ROWS_A_BLOCK if heading <= _LONGEST_USUAL_HEADER else most_characters
    block, count, length = [header], 0, 0
    for row in rows:
        size = _length(row)
        if count and (count >= most_rows or length + size > most_characters):
            yield _block(header, block, place)
            block, count, length = [], 0, 0
        block.append(row)
        count, length = count + 1, length + size
    if block:
        yield _block(header, block, place)


def _length(row: TableRow) -> int:
    return sum(map(len, row.cells)) + len(row.cells)


def _block(header: TableRow, block: Sequence[TableRow], place: Place) -> Section:
    first, last = block[0], block[-1]
    rows = [row.cells for row in block if row is not header]
    span = Span(first.span.start, last.span.end) if first.span and last.span else None
    where = replace(place, rows=(first.number, last.number), span=span)
    return make_section(format_table(header.cells, rows), where, "table")


def _cell(text: str) -> str:
    return to_one_line(text).replace("|", "\\|")


def _line(cells: Sequence[str], width: int) -> str:
    return f"| {' | '.join([*cells, *[''] * (width - len(cells))])} |"
