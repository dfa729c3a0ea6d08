"""Visible text of HTML elements, and tables as rows of cells."""

from lxml import etree
from lxml.html import HtmlElement

from connectors.extraction.markdown_tables import limit_repeated_text
from connectors.extraction.result import SizeLimit

MOST_CELLS = 2_000_000

_HIDDEN_TAGS = {
    *("script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "head"),
    *("nav", "select", "dialog"),
}
_HIDDEN_ROLES = {"navigation", "search"}
_WIDEST_SPAN = 100
_SEPARATING_TAGS = {"br", "p", "div", "li", "tr"}


def is_visible(element: HtmlElement) -> bool:
    return not (
        element.tag in _HIDDEN_TAGS
        or element.get("hidden") is not None
        or element.get("aria-hidden") == "true"
        or element.get("role") in _HIDDEN_ROLES
        or "display:none" in (element.get("style") or "").replace(" ", "").lower()
    )


def get_visible_text(element: HtmlElement) -> str:
    pieces: list[str] = []
    steps = etree.iterwalk(element, events=("start", "end"))
    for event, inner in steps:
        if event == "start" and is_visible(inner):
            pieces.append(" " if inner.tag in _SEPARATING_TAGS else "")
            pieces.append(inner.text or "")
            continue
        if event == "start":
            steps.skip_subtree()
        pieces.append((inner.tail or "") if inner is not element else "")
    return " ".join("".join(pieces).split())


def extract_data_rows(table: HtmlElement) -> list[list[str]]:
    """Return the rows of a table of data; none if the table is only layout.

    A layout table contains headings or tables, or has a single column. A cell that spans rows is
    repeated in each.

    Raises:
        ExtractionError: the table is too large.
    """
    if next(table.iterdescendants("table", "h1", "h2", "h3", "h4", "h5", "h6"), None) is not None:
        return []
    rows: list[list[str]] = []
    spanning: dict[int, tuple[int, str]] = {}
    limit = SizeLimit(MOST_CELLS, f"a table has more than {MOST_CELLS:,} cells")
    for element in table.iter("tr"):
        rows.append(_make_row(element, spanning))
        limit.add(len(rows[-1]))
    return rows if max(map(len, rows), default=0) > 1 else []


def _make_row(element: HtmlElement, spanning: dict[int, tuple[int, str]]) -> list[str]:
    """Make one row; `spanning` holds, by column, cells of rows above that span into it."""
    row: list[str] = []
    for cell in element.iterchildren("td", "th"):
        _add_spanning_cells(spanning, row)
        columns, rows = _parse_span(cell, "colspan"), _parse_span(cell, "rowspan")
        texts = [get_visible_text(cell), *[""] * (columns - 1)]
        if rows > 1:
            carried = enumerate(map(limit_repeated_text, texts))
            spanning.update({len(row) + i: (rows - 1, text) for i, text in carried})
        row.extend(texts)
    _add_spanning_cells(spanning, row)
    return row


def _add_spanning_cells(spanning: dict[int, tuple[int, str]], row: list[str]) -> None:
    while (cell := spanning.pop(len(row), None)) is not None:
        left, text = cell
        if left > 1:
            spanning[len(row)] = (left - 1, text)
        row.append(text)


def _parse_span(cell: HtmlElement, name: str) -> int:
    text = cell.get(name) or "1"
    return max(1, min(int(text), _WIDEST_SPAN)) if text.isdecimal() and len(text) < 9 else 1
