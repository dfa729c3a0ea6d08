"""What of a page is seen, and its tables as rows of cells."""

from lxml import etree
from lxml.html import HtmlElement

from connectors.extraction.markdown_tables import limit_repeated_text
from connectors.extraction.result import SizeLimit

MOST_CELLS = 2_000_000

_UNSEEN = {
    *("script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "head"),
    *("nav", "select", "dialog"),
}
_UNSEEN_ROLES = {"navigation", "search"}
_WIDEST_SPAN = 100
_APART = {"br", "p", "div", "li", "tr"}


def is_visible(element: HtmlElement) -> bool:
    return not (
        element.tag in _UNSEEN
        or element.get("hidden") is not None
        or element.get("aria-hidden") == "true"
        or element.get("role") in _UNSEEN_ROLES
        or "display:none" in (element.get("style") or "").replace(" ", "").lower()
    )


def get_visible_text(element: HtmlElement) -> str:
    pieces: list[str] = []
    steps = etree.iterwalk(element, events=("start", "end"))
    for event, inner in steps:
        if event == "start" and is_visible(inner):
            pieces.append(" " if inner.tag in _APART else "")
            pieces.append(inner.text or "")
            continue
        if event == "start":
            steps.skip_subtree()
        pieces.append((inner.tail or "") if inner is not element else "")
    return " ".join("".join(pieces).split())


def extract_data_rows(table: HtmlElement) -> list[list[str]]:
    """The rows of a table of data; none where the table only arranges the page.

    A table arranges when it holds headings or tables, or has a single column. A cell over several
    rows is repeated in each of them.

    Raises:
        ExtractionError: the table is too large.
    """
    if next(table.iterdescendants("table", "h1", "h2", "h3", "h4", "h5", "h6"), None) is not None:
        return []
    rows: list[list[str]] = []
    below: dict[int, tuple[int, str]] = {}
    allowance = SizeLimit(MOST_CELLS, f"a table has more than {MOST_CELLS:,} cells")
    for element in table.iter("tr"):
        rows.append(_row(element, below))
        allowance.take(len(rows[-1]))
    return rows if max(map(len, rows), default=0) > 1 else []


def _row(element: HtmlElement, below: dict[int, tuple[int, str]]) -> list[str]:
    """One row; `below` holds what cells of the rows above put into it, by column."""
    row: list[str] = []
    for cell in element.iterchildren("td", "th"):
        _carry(below, row)
        columns, rows = _span(cell, "colspan"), _span(cell, "rowspan")
        texts = [get_visible_text(cell), *[""] * (columns - 1)]
        if rows > 1:
            carried = enumerate(map(limit_repeated_text, texts))
            below.update({len(row) + i: (rows - 1, text) for i, text in carried})
        row.extend(texts)
    _carry(below, row)
    return row


def _carry(below: dict[int, tuple[int, str]], row: list[str]) -> None:
    while (held := below.pop(len(row), None)) is not None:
        left, text = held
        if left > 1:
            below[len(row)] = (left - 1, text)
        row.append(text)


def _span(cell: HtmlElement, name: str) -> int:
    text = cell.get(name) or "1"
    return max(1, min(int(text), _WIDEST_SPAN)) if text.isdecimal() and len(text) < 9 else 1
