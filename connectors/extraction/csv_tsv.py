"""Read CSV and TSV files as tables in blocks of rows."""

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from connectors.document import Place, Span
from connectors.extraction.encoding import decode
from connectors.extraction.markdown_tables import TableRow, split_table
from connectors.extraction.parser_guard import convert_parser_errors
from connectors.extraction.result import ExtractionError, ExtractionResult
from connectors.extraction.text import read_text

_DELIMITERS = ",;\t|"
_SAMPLE = 65_536
_SAMPLE_ROWS = 100

# The size of the file already limits that of a cell.
csv.field_size_limit(min(sys.maxsize, 2**31 - 1))


def read_csv(data: bytes) -> ExtractionResult:
    """Make a section of each block of rows, as a table under the first row as header. The span of a
    section covers its rows in the decoded file; its text is reformatted.

    Raises:
        ExtractionError: the file is not text, or holds nothing.
    """
    return _read(data, _DELIMITERS)


def read_tsv(data: bytes) -> ExtractionResult:
    """Read as `read_csv` does, with tabs between the cells."""
    return _read(data, "\t")


def _read(data: bytes, delimiters: str) -> ExtractionResult:
    text = decode(data)
    delimiter = _find_delimiter(text, delimiters)
    if delimiter is None:
        return read_text(data)
    with convert_parser_errors("table", csv.Error):
        rows = _iterate_rows(text, delimiter)
        header = next(rows, None)
        if header is None:
            raise ExtractionError("the file contains only blank space")
        return ExtractionResult(sections=tuple(split_table(header, rows, Place())))


def _iterate_rows(text: str, delimiter: str) -> Iterator[TableRow]:
    """Yield the rows that are not blank, with their numbers among all rows."""
    lines = _Lines(text)
    start = 0
    for number, cells in enumerate(csv.reader(lines, delimiter=delimiter), start=1):
        if any(map(str.strip, cells)):
            yield TableRow(number, cells, Span(start, lines.position))
        start = lines.position


class _Lines:
    """Iterates over the lines of a text and tracks the position reached."""

    def __init__(self, text: str) -> None:
        self.position = 0
        self._text = text

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        if self.position >= len(self._text):
            raise StopIteration
        start = self.position
        end = self._text.find("\n", start) + 1 or len(self._text)
        self.position = end
        return self._text[start:end]


def _find_delimiter(text: str, candidates: str) -> str | None:
    """Return the delimiter that splits the first rows most evenly, or None if none splits them."""
    sample = text[:_SAMPLE]
    scores = {candidate: _rate_evenness(sample, candidate) for candidate in candidates}
    best = max(scores, key=lambda candidate: scores[candidate])
    return best if scores[best] > (0.0, 0) else None


def _rate_evenness(sample: str, delimiter: str) -> tuple[float, int]:
    """Return the share of rows with the most common number of cells, and that number if above one."""
    rows = islice(csv.reader(_Lines(sample), delimiter=delimiter), _SAMPLE_ROWS)
    widths = Counter(len(row) for row in rows if row)
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
    return (count / widths.total(), width) if width > 1 else (0.0, 0)
