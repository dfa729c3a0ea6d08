"""Rows of cells to Markdown tables."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from connectors.document import Place, Section, Span
from connectors.extraction.extracted import one_line, section

Row: TypeAlias = Sequence[str]

_ROWS_A_BLOCK = 50
_CHARACTERS_A_BLOCK = 4000


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table that may have a million of them."""

    number: int
    """In its sheet or file, counted from 1."""
    cells: Row
    span: Span | None = None
    """In the decoded file, where that is a text."""


def markdown_table(header: Row, rows: Sequence[Row]) -> str:
    """A Markdown table; short rows are filled up, and columns that are empty throughout left out."""
    lines = [header, *rows]
    width = max(map(len, lines))
    grid = [[_cell(line[i]) if i < len(line) else "" for i in range(width)] for line in lines]
    kept = [i for i in range(width) if any(line[i] for line in grid)]
    written = [_line([line[i] for i in kept]) for line in grid]
    return "\n".join([written[0], _line(["---"] * len(kept)), *written[1:]])


def grid_table(grid: Sequence[Row]) -> str | None:
    """The table whose first row is its header; None when it holds no text."""
    filled = [row for row in grid if any(map(str.strip, row))]
    return markdown_table(filled[0], filled[1:]) if filled else None


def table_blocks(
    header: TableRow, rows: Iterable[TableRow], place: Place
) -> Iterator[Section]:
    """Cut a long table into sections of its rows, each a table under the same header.

    `place` says where the table is; each section adds its rows and their span.
    """
    block = [header]
    length = 0
    for row in rows:
        size = sum(map(len, row.cells))
        if len(block) > _ROWS_A_BLOCK or (length and length + size > _CHARACTERS_A_BLOCK):
            yield _block(header, block, place)
            block, length = [], 0
        block.append(row)
        length += size
    if block:
        yield _block(header, block, place)


def _block(header: TableRow, block: Sequence[TableRow], place: Place) -> Section:
    first, last = block[0], block[-1]
    rows = [row.cells for row in block if row is not header]
    span = Span(first.span.start, last.span.end) if first.span and last.span else None
    where = replace(place, rows=(first.number, last.number), span=span)
    return section(markdown_table(header.cells, rows), where, "table")


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def _line(cells: Row) -> str:
    return f"| {' | '.join(cells)} |"
