"""The XML of Word documents: blocks, tables, styles and their text."""

from collections.abc import Iterator, Mapping

from lxml import etree

from connectors.extraction.markdown_tables import limit_repeated_text
from connectors.text_cleaning import to_one_line

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_TEXT_BOX = f"{W}txbxContent"
_IMAGE = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}docPr"
# Deleted and moved text stays in the file; a text box is a block of its own.
_SKIPPED = {f"{W}del", f"{W}moveFrom", f"{W}pPr", f"{W}rPr", _FALLBACK, _TEXT_BOX}
_CONTROL_CHARACTERS = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}
_BODY_LEVEL = 9


def iterate_blocks(parent: etree._Element) -> Iterator[etree._Element]:
    """Yield the paragraphs and tables below an element in order, including those in text boxes.

    Recursion is bounded: the parser allows 256 levels.
    """
    for child in parent:
        if child.tag == f"{W}tbl":
            yield child
        elif child.tag == f"{W}p":
            yield child
            for box in _iterate_text_boxes(child):
                yield from iterate_blocks(box)
        elif child.tag not in _SKIPPED:
            yield from iterate_blocks(child)


def _iterate_text_boxes(element: etree._Element) -> Iterator[etree._Element]:
    for child in element:
        if child.tag == _TEXT_BOX:
            yield child
        elif child.tag != _FALLBACK:
            yield from _iterate_text_boxes(child)


def get_paragraph_text(paragraph: etree._Element) -> str:
    return "".join(_iterate_text(paragraph)).strip()


def _iterate_text(element: etree._Element) -> Iterator[str]:
    for child in element:
        if child.tag in (f"{W}t", _MATH_TEXT):
            yield child.text or ""
        elif child.tag in _CONTROL_CHARACTERS:
            yield _CONTROL_CHARACTERS[child.tag]
        elif child.tag == _IMAGE:
            yield child.get("descr", "")
        elif child.tag not in _SKIPPED:
            yield from _iterate_text(child)


def extract_table_rows(table: etree._Element) -> list[list[str]]:
    """Return the rows of a table as texts. A cell that spans rows is repeated in each."""
    rows: list[list[str]] = []
    for element in _iterate_children(table, f"{W}tr"):
        row: list[str] = []
        for cell in _iterate_children(element, f"{W}tc"):
            merged = cell.find(f"{W}tcPr/{W}vMerge")
            continued = merged is not None and merged.get(f"{W}val", "continue") == "continue"
            above = rows[-1] if rows and continued else []
            row.append(
                limit_repeated_text(above[len(row)])
                if len(row) < len(above)
                else get_cell_text(cell)
            )
            row.extend([""] * (_parse_number(cell.find(f"{W}tcPr/{W}gridSpan"), 1) - 1))
        rows.append(row)
    return rows


def iterate_cells(table: etree._Element) -> Iterator[etree._Element]:
    for row in _iterate_children(table, f"{W}tr"):
        yield from _iterate_children(row, f"{W}tc")


def get_cell_text(cell: etree._Element) -> str:
    inner = (_get_block_text(block) for block in iterate_blocks(cell))
    return to_one_line(" ".join(inner))


def _get_block_text(block: etree._Element) -> str:
    return (
        get_paragraph_text(block)
        if block.tag == f"{W}p"
        else " ".join(map(get_cell_text, iterate_cells(block)))
    )


def _iterate_children(parent: etree._Element, tag: str) -> Iterator[etree._Element]:
    """Yield the children with this tag, including those inside content controls."""
    for child in parent:
        if child.tag == tag:
            yield child
        elif child.tag in (f"{W}sdt", f"{W}sdtContent", f"{W}ins", f"{W}customXml"):
            yield from _iterate_children(child, tag)


def get_list_depth(paragraph: etree._Element) -> int | None:
    """Return the nesting depth of a list paragraph, from 0; None outside of lists."""
    numbering = paragraph.find(f"{W}pPr/{W}numPr")
    if numbering is None or _parse_number(numbering.find(f"{W}numId"), 0) == 0:
        return None
    return min(_parse_number(numbering.find(f"{W}ilvl"), 0), 8)


def get_style(paragraph: etree._Element) -> str:
    style = paragraph.find(f"{W}pPr/{W}pStyle")
    return "" if style is None else style.get(f"{W}val", "")


def get_outline_level(element: etree._Element) -> int | None:
    """Return the heading level, from 1, that a paragraph or style defines itself."""
    level = element.find(f"{W}pPr/{W}outlineLvl")
    number = _parse_number(level, _BODY_LEVEL)
    return number + 1 if number < _BODY_LEVEL else None


def find_heading_levels(styles: etree._Element) -> Mapping[str, int]:
    """Return the heading level of each style that defines or inherits one; that of a title is 0."""
    own: dict[str, int | None] = {}
    based: dict[str, str] = {}
    for style in styles.iter(f"{W}style"):
        name = style.get(f"{W}styleId", "")
        own[name] = _parse_style_level(style)
        base = style.find(f"{W}basedOn")
        based[name] = "" if base is None else base.get(f"{W}val", "")
    found = {name: _find_inherited_level(name, own, based) for name in own}
    return {name: level for name, level in found.items() if level is not None}


def _parse_style_level(style: etree._Element) -> int | None:
    element = style.find(f"{W}name")
    name = "" if element is None else element.get(f"{W}val", "").lower()
    if name == "title":
        return 0
    prefix, _, number = name.rpartition(" ")
    if prefix == "heading" and number in set("123456789"):
        return int(number)
    return get_outline_level(style)


def _find_inherited_level(
    name: str, own: Mapping[str, int | None], based: Mapping[str, str]
) -> int | None:
    seen: set[str] = set()
    while name in own and name not in seen:
        if (level := own[name]) is not None:
            return level
        seen.add(name)
        name = based[name]
    return None


def _parse_number(element: etree._Element | None, default: int) -> int:
    text = "" if element is None else element.get(f"{W}val", "")
    return int(text) if text.isdecimal() and len(text) < 4 else default
