"""Format rows of cells as Markdown tables."""

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
    """In its sheet or file, from 1."""
    cells: Row
    span: Span | None = None
    """In the decoded file, if that is text."""


def format_table(header: Row, rows: Sequence[Row]) -> str:
    """Format a Markdown table without its empty columns."""
    lines = [[_format_cell(text) for text in line] for line in (header, *rows)]
    kept = sorted({i for line in lines for i, text in enumerate(line) if text})
    # Short rows are padded for readability, but not in very wide tables, where it would cost memory.
    filled = len(kept) if len(kept) <= _WIDEST_FILLED else 0
    written = [_format_row(_select_columns(line, kept), filled) for line in lines]
    return "\n".join([written[0], _format_row(["---"] * len(kept), 0), *written[1:]])


def _select_columns(line: Row, kept: Sequence[int]) -> list[str]:
    return [line[i] for i in kept[: bisect_left(kept, len(line))]]


def limit_repeated_text(text: str) -> str:
    """Return what a cell that spans rows repeats in the rows below: a label, but not a long text,
    because then a small file could grow without limit."""
    return text if len(text) <= _LONGEST_LABEL else ""


def format_grid(grid: Sequence[Row]) -> str | None:
    """Format a table whose first row is its header; None if it contains no text."""
    filled = [row for row in grid if any(map(str.strip, row))]
    return format_table(filled[0], filled[1:]) if filled else None


def split_table(header: TableRow, rows: Iterable[TableRow], place: Place) -> Iterator[Section]:
    """Split a long table into sections, each a table under the same header.

    A block is at least four times as long as its header, so that repeating it adds a quarter at most.
    `place` is that of the table; each section adds its rows and their span.
    """
    heading = _measure(header)
    most_characters = max(_CHARACTERS_A_BLOCK, 4 * heading)
    most_rows = _ROWS_A_BLOCK if heading <= _LONGEST_USUAL_HEADER else most_characters
    block, count, length = [header], 0, 0
    for row in rows:
        size = _measure(row)
        if count and (count >= most_rows or length + size > most_characters):
            yield _make_block(header, block, place)
            block, count, length = [], 0, 0
        block.append(row)
        count, length = count + 1, length + size
    if block:
        yield _make_block(header, block, place)


def _measure(row: TableRow) -> int:
    return sum(map(len, row.cells)) + len(row.cells)


def _make_block(header: TableRow, block: Sequence[TableRow], place: Place) -> Section:
    first, last = block[0], block[-1]
    rows = [row.cells for row in block if row is not header]
    span = Span(first.span.start, last.span.end) if first.span and last.span else None
    where = replace(place, rows=(first.number, last.number), span=span)
    return make_section(format_table(header.cells, rows), where, "table")


def _format_cell(text: str) -> str:
    return to_one_line(text).replace("|", "\\|")


def _format_row(cells: Sequence[str], width: int) -> str:
    return f"| {' | '.join([*cells, *[''] * (width - len(cells))])} |"
