"""Read Word documents (DOCX): headings, paragraphs, lists and tables in order."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from io import BytesIO

import docx
from docx.document import Document as WordDocument
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import OpcError
from lxml import etree

from connectors.extraction.docx_xml import (
    W,
    extract_table_rows,
    find_heading_levels,
    get_list_depth,
    get_outline_level,
    get_paragraph_text,
    get_style,
    iterate_blocks,
    iterate_cells,
)
from connectors.extraction.markdown_tables import format_grid
from connectors.extraction.office_metadata import add_properties
from connectors.extraction.parser_guard import convert_parser_errors
from connectors.extraction.result import ExtractionError, ExtractionResult, SectionBuilder
from connectors.extraction.zip_limits import check_zip_limits

_FORMAT = "Word document"
_LARGEST_PART = 100_000_000
_SIDE_PARTS = {
    RELATIONSHIP_TYPE.FOOTNOTES: "Footnotes",
    RELATIONSHIP_TYPE.ENDNOTES: "Endnotes",
    RELATIONSHIP_TYPE.COMMENTS: "Comments",
    RELATIONSHIP_TYPE.HEADER: "Header and footer",
    RELATIONSHIP_TYPE.FOOTER: "Header and footer",
}


def read_docx(data: bytes) -> ExtractionResult:
    """Make a section of each heading's own text and of each table. Notes, comments, headers and
    footers come last. There are no spans, because text is reformatted, and no pages, because Word
    sets them when it prints.

    Raises:
        ExtractionError: the file is broken, protected, without text, or beyond a limit.
    """
    check_zip_limits(data, _FORMAT, _LARGEST_PART)
    began = datetime.now(UTC)
    with convert_parser_errors(_FORMAT, OpcError):
        document = docx.Document(BytesIO(data))
        levels = find_heading_levels(document.styles.element)
        outline = SectionBuilder()
        _read_blocks(document.element.body, levels, outline)
        title = outline.headings.first
        for name, texts in _collect_side_texts(document).items():
            outline.add_heading(1, name)
            for text in texts:
                outline.add_paragraph(text)
        if not (sections := outline.build()):
            raise ExtractionError("the document contains no text")
        found, stated = ExtractionResult(sections=sections, title=title), document.core_properties
        return add_properties(found, stated, stated.author, began)


def _read_blocks(
    parent: etree._Element, levels: Mapping[str, int], outline: SectionBuilder
) -> None:
    for block in iterate_blocks(parent):
        if block.tag == f"{W}tbl":
            _read_table(block, levels, outline)
        else:
            _read_paragraph(block, levels, outline)


def _read_paragraph(
    paragraph: etree._Element, levels: Mapping[str, int], outline: SectionBuilder
) -> None:
    text = get_paragraph_text(paragraph)
    level = get_outline_level(paragraph) or levels.get(get_style(paragraph))
    depth = get_list_depth(paragraph)
    if not text:
        return
    if level is not None:
        outline.add_heading(level, text)
    elif depth is not None:
        indent = "  " * depth
        outline.add_list_item(f"{indent}- " + text.replace("\n", f"\n{indent}  "))
    else:
        outline.add_paragraph(text)


def _read_table(table: etree._Element, levels: Mapping[str, int], outline: SectionBuilder) -> None:
    """Add a table; one with a single column is only layout, so its cells are read as text."""
    rows = extract_table_rows(table)
    if max(map(len, rows), default=0) > 1:
        outline.add_table(format_grid(rows))
        return
    for cell in iterate_cells(table):
        _read_blocks(cell, levels, outline)


def _collect_side_texts(document: WordDocument) -> Mapping[str, Iterable[str]]:
    """Collect the texts outside the body, each once, because pages repeat their headers."""
    found: dict[str, dict[str, None]] = {}
    for relation in document.part.rels.values():
        name = _SIDE_PARTS.get(relation.reltype)
        if name is None or relation.is_external:
            continue
        root = etree.fromstring(relation.target_part.blob, _make_safe_parser())
        texts = (get_paragraph_text(p) for p in root.iter(f"{W}p"))
        found.setdefault(name, {}).update(dict.fromkeys(filter(None, texts)))
    return {name: found[name] for name in dict.fromkeys(_SIDE_PARTS.values()) if found.get(name)}


def _make_safe_parser() -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True)
