"""Word documents (DOCX): headings, paragraphs, lists and tables in their order."""

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
from connectors.extraction.result import ExtractionError, ExtractionResult
from connectors.extraction.section_builder import SectionBuilder
from connectors.extraction.zip_limits import check_zip_limits

_WHAT = "Word document"
_LARGEST_PART = 100_000_000
_BESIDE = {
    RELATIONSHIP_TYPE.FOOTNOTES: "Footnotes",
    RELATIONSHIP_TYPE.ENDNOTES: "Endnotes",
    RELATIONSHIP_TYPE.COMMENTS: "Comments",
    RELATIONSHIP_TYPE.HEADER: "Header and footer",
    RELATIONSHIP_TYPE.FOOTER: "Header and footer",
}


def read_docx(data: bytes) -> ExtractionResult:
    """A section for each heading's own text and for each table; notes, comments and what stands
    at the edge of the pages come last. Text is transformed, so there are no spans, and the pages
    of a Word document are not known before it is printed.

    Raises:
        ExtractionError: broken, protected, without text, or beyond a limit.
    """
    check_zip_limits(data, _WHAT, _LARGEST_PART)
    began = datetime.now(UTC)
    with convert_parser_errors(_WHAT, OpcError):
        document = docx.Document(BytesIO(data))
        levels = find_heading_levels(document.styles.element)
        outline = SectionBuilder()
        _read_blocks(document.element.body, levels, outline)
        title = outline.headings.first
        for name, texts in _beside(document).items():
            outline.add_heading(1, name)
            for text in texts:
                outline.add_paragraph(text)
        if not (sections := outline.build()):
            raise ExtractionError("the document holds no text")
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
    """A table of a single column arranges the page: its cells are read as text."""
    rows = extract_table_rows(table)
    if max(map(len, rows), default=0) > 1:
        outline.add_table(format_grid(rows))
        return
    for cell in iterate_cells(table):
        _read_blocks(cell, levels, outline)


def _beside(document: WordDocument) -> Mapping[str, Iterable[str]]:
    """What stands beside the text, each text once: pages repeat their headers."""
    found: dict[str, dict[str, None]] = {}
    for relation in document.part.rels.values():
        name = _BESIDE.get(relation.reltype)
        if name is None or relation.is_external:
            continue
        root = etree.fromstring(relation.target_part.blob, _safe_parser())
        texts = (get_paragraph_text(p) for p in root.iter(f"{W}p"))
        found.setdefault(name, {}).update(dict.fromkeys(filter(None, texts)))
    return {name: found[name] for name in dict.fromkeys(_BESIDE.values()) if found.get(name)}


def _safe_parser() -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True)
