"""The XML inside Word documents: its blocks and their text."""

from collections.abc import Iterator, Mapping

from lxml import etree

from connectors.extraction.markdown_tables import limit_repeated_text
from connectors.text_cleaning import to_one_line

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_TEXT_BOX = f"{W}txbxContent"
_PICTURE = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}docPr"
# Deleted and moved text is still in the file; a text box is a block of its own.
_LEFT_OUT = {f"{W}del", f"{W}moveFrom", f"{W}pPr", f"{W}rPr", _FALLBACK, _TEXT_BOX}
_MARKS = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}
_BODY_LEVEL = 9


def iterate_blocks(parent: etree._Element) -> Iterator[etree._Element]:
    """The paragraphs and tables below an element, in order, those of text boxes included.

    The tree is at most as deep as the parser allows, 256 levels.
    """
    for child in parent:
        if child.tag == f"{W}tbl":
            yield child
        elif child.tag == f"{W}p":
            yield child
            for box in _text_boxes(child):
                yield from iterate_blocks(box)
        elif child.tag not in _LEFT_OUT:
            yield from iterate_blocks(child)


def _text_boxes(element: etree._Element) -> Iterator[etree._Element]:
    for child in element:
        if child.tag == _TEXT_BOX:
            yield child
        elif child.tag != _FALLBACK:
            yield from _text_boxes(child)


def get_paragraph_text(paragraph: etree._Element) -> str:
    return "".join(_pieces(paragraph)).strip()


def _pieces(element: etree._Element) -> Iterator[str]:
    for child in element:
        if child.tag in (f"{W}t", _MATH_TEXT):
            yield child.text or ""
        elif child.tag in _MARKS:
            yield _MARKS[child.tag]
        elif child.tag == _PICTURE:
            yield child.get("descr", "")
        elif child.tag not in _LEFT_OUT:
            yield from _pieces(child)


def extract_table_rows(table: etree._Element) -> list[list[str]]:
    """The rows of a table as texts. A cell over several rows is repeated in each of them."""
    rows: list[list[str]] = []
    for element in _inner(table, f"{W}tr"):
        row: list[str] = []
        for cell in _inner(element, f"{W}tc"):
            merged = cell.find(f"{W}tcPr/{W}vMerge")
            continued = merged is not None and merged.get(f"{W}val", "continue") == "continue"
            above = rows[-1] if rows and continued else []
            row.append(
                limit_repeated_text(above[len(row)])
                if len(row) < len(above)
                else get_cell_text(cell)
            )
            row.extend([""] * (_number(cell.find(f"{W}tcPr/{W}gridSpan"), 1) - 1))
        rows.append(row)
    return rows


def iterate_cells(table: etree._Element) -> Iterator[etree._Element]:
    for row in _inner(table, f"{W}tr"):
        yield from _inner(row, f"{W}tc")


def get_cell_text(cell: etree._Element) -> str:
    inner = (_inner_text(block) for block in iterate_blocks(cell))
    return to_one_line(" ".join(inner))


def _inner_text(block: etree._Element) -> str:
    return (
        get_paragraph_text(block)
        if block.tag == f"{W}p"
        else " ".join(map(get_cell_text, iterate_cells(block)))
    )


def _inner(parent: etree._Element, tag: str) -> Iterator[etree._Element]:
    """The children with this tag, those inside content controls included."""
    for child in parent:
        if child.tag == tag:
            yield child
        elif child.tag in (f"{W}sdt", f"{W}sdtContent", f"{W}ins", f"{W}customXml"):
            yield from _inner(child, tag)


def get_list_depth(paragraph: etree._Element) -> int | None:
    """How deep in a list the paragraph stands, from 0; None outside of lists."""
    numbering = paragraph.find(f"{W}pPr/{W}numPr")
    if numbering is None or _number(numbering.find(f"{W}numId"), 0) == 0:
        return None
    return min(_number(numbering.find(f"{W}ilvl"), 0), 8)


def get_style(paragraph: etree._Element) -> str:
    style = paragraph.find(f"{W}pPr/{W}pStyle")
    return "" if style is None else style.get(f"{W}val", "")


def get_outline_level(element: etree._Element) -> int | None:
    """The heading level, from 1, that a paragraph or style states by itself."""
    level = element.find(f"{W}pPr/{W}outlineLvl")
    number = _number(level, _BODY_LEVEL)
    return number + 1 if number < _BODY_LEVEL else None


def find_heading_levels(styles: etree._Element) -> Mapping[str, int]:
    """The heading level of each style that has one, its own or that of the style it is based on.

    The style of a title has level 0.
    """
    own: dict[str, int | None] = {}
    based: dict[str, str] = {}
    for style in styles.iter(f"{W}style"):
        name = style.get(f"{W}styleId", "")
        own[name] = _style_level(style)
        base = style.find(f"{W}basedOn")
        based[name] = "" if base is None else base.get(f"{W}val", "")
    found = {name: _inherited(name, own, based) for name in own}
    return {name: level for name, level in found.items() if level is not None}


def _style_level(style: etree._Element) -> int | None:
    element = style.find(f"{W}name")
    name = "" if element is None else element.get(f"{W}val", "").lower()
    if name == "title":
        return 0
    prefix, _, number = name.rpartition(" ")
    if prefix == "heading" and number in set("123456789"):
        return int(number)
    return get_outline_level(style)


def _inherited(name: str, own: Mapping[str, int | None], based: Mapping[str, str]) -> int | None:
    seen: set[str] = set()
    while name in own and name not in seen:
        if (level := own[name]) is not None:
            return level
        seen.add(name)
        name = based[name]
    return None


def _number(element: etree._Element | None, otherwise: int) -> int:
    text = "" if element is None else element.get(f"{W}val", "")
    return int(text) if text.isdecimal() and len(text) < 4 else otherwise
