"""CSV and TSV: a table, in blocks of rows."""

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

# A cell may be as long as the file, whose size is bounded already.
csv.field_size_limit(min(sys.maxsize, 2**31 - 1))


def read_csv(data: bytes) -> ExtractionResult:
    """A section for each block of rows, a table under the header of the file, which is its first
    row. The span of a section is that of its rows in the decoded file; its text is transformed.

    Raises:
        ExtractionError: not text, or nothing in it.
    """
    return _read(data, _DELIMITERS)


def read_tsv(data: bytes) -> ExtractionResult:
    """As `read_csv`, with tabs between the cells."""
    return _read(data, "\t")


def _read(data: bytes, delimiters: str) -> ExtractionResult:
    text = decode(data)
    delimiter = _delimiter(text, delimiters)
    if delimiter is None:
        return read_text(data)
    with convert_parser_errors("table", csv.Error):
        rows = _rows(text, delimiter)
        header = next(rows, None)
        if header is None:
            raise ExtractionError("the file holds only blank space")
        return ExtractionResult(sections=tuple(split_table(header, rows, Place())))


def _rows(text: str, delimiter: str) -> Iterator[TableRow]:
    """The rows that are not blank, numbered as all rows are."""
    lines = _Lines(text)
    start = 0
    for number, cells in enumerate(csv.reader(lines, delimiter=delimiter), start=1):
        if any(map(str.strip, cells)):
            yield TableRow(number, cells, Span(start, lines.position))
        start = lines.position


class _Lines:
    """The lines of a text, one after the other, and how far they have been taken."""

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


def _delimiter(text: str, candidates: str) -> str | None:
    """The one that cuts the first rows most evenly; None where none cuts them at all."""
    sample = text[:_SAMPLE]
    scores = {candidate: _evenness(sample, candidate) for candidate in candidates}
    best = max(scores, key=lambda candidate: scores[candidate])
    return best if scores[best] > (0.0, 0) else None


def _evenness(sample: str, delimiter: str) -> tuple[float, int]:
    """The share of rows that have the commonest number of cells, and that number, if above one."""
    rows = islice(csv.reader(_Lines(sample), delimiter=delimiter), _SAMPLE_ROWS)
    widths = Counter(len(row) for row in rows if row)
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
    return (count / widths.total(), width) if width > 1 else (0.0, 0)
