"""A report as a Word document: its Markdown with headings, lists, tables and links, and the sources under their numbers."""

import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markdown_it.token import Token

from backend.research.record.final_report import FinalReport
from connectors.text_cleaning import REPLACEMENT, replace_controls
from indexing.text.markdown_links import safe_link

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph
    from lxml.etree import _Element

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_MOST_HEADINGS = 9
_LISTS = {"bullet_list_open": "List Bullet", "ordered_list_open": "List Number"}
_DEEPEST_LIST = 3
"""Word's own styles of lists go so deep."""
_LINKED = ("https://", "http://", "mailto:")
_LINK_COLOR = "0563C1"
# Character references bring in what a text was freed of before, and these two are no characters of XML.
_NOT_XML = re.compile("[\ufffe\uffff]")


class _Parser(MarkdownIt):
    """Knows every address for one: none becomes a link, each is written out."""

    def validateLink(self, url: str) -> bool:
        del url
        return True


_PARSER = _Parser("commonmark", {"html": False}).enable("table")


def write_docx(report: FinalReport) -> bytes:
    """Return the file. No picture is loaded and no link is opened to make it."""
    from docx import Document as open_document  # takes a tenth of a second, and few need it

    document = open_document()
    _write_blocks(document, _PARSER.parse(replace_controls(report.markdown)))
    written = BytesIO()
    document.save(written)
    return written.getvalue()


def _write_blocks(document: "Document", tokens: Sequence[Token]) -> None:
    lists: list[str] = []
    rows: list[list[Token]] = []
    heading: int | None = None
    for token in tokens:
        match token.type:
            case "heading_open":
                heading = min(int(token.tag[1:]), _MOST_HEADINGS)
            case "heading_close":
                heading = None
            case "bullet_list_open" | "ordered_list_open":
                lists.append(_LISTS[token.type])
            case "bullet_list_close" | "ordered_list_close":
                lists.pop()
            case "tr_open":
                rows.append([])
            case "table_close":
                _write_table(document, rows)
                rows = []
            case "inline" if rows:
                rows[-1].append(token)
            case "inline":
                _write_inline(_begin_paragraph(document, lists, heading), token.children or ())
            case "fence" | "code_block":
                code = _to_xml_text(token.content.rstrip("\n"))
                document.add_paragraph(code, style="No Spacing")
            case _:
                pass


def _write_table(document: "Document", rows: Sequence[Sequence[Token]]) -> None:
    """Write a table with its head in its first row, which Word repeats on each page."""
    table = document.add_table(len(rows), max(map(len, rows)), style="Table Grid")
    for row, cells in zip(table.rows, rows, strict=True):
        for cell, token in zip(row.cells, cells, strict=False):
            _write_inline(cell.paragraphs[0], token.children or ())
    head = table.rows[0]
    # python-docx has neither heads of tables nor links that are written: these are put in as elements.
    head._tr.get_or_add_trPr().append(_make_element("w:tblHeader"))  # noqa: SLF001
    for cell in head.cells:
        for run in cell.paragraphs[0].runs:
            run.bold = True


def _begin_paragraph(
    document: "Document", lists: Sequence[str], heading: int | None
) -> "Paragraph":
    if heading is not None:
        return document.add_paragraph(style=f"Heading {heading}")
    if not lists:
        return document.add_paragraph()
    depth = min(len(lists), _DEEPEST_LIST)
    return document.add_paragraph(style=lists[-1] if depth == 1 else f"{lists[-1]} {depth}")


def _write_inline(paragraph: "Paragraph", tokens: Sequence[Token]) -> None:
    bold = italic = 0
    for token in _spell_out_links(tokens):
        match token.type:
            case "strong_open" | "strong_close":
                bold += token.nesting
            case "em_open" | "em_close":
                italic += token.nesting
            case "text" | "code_inline":
                run = paragraph.add_run(_to_xml_text(token.content))
                run.bold, run.italic = bold > 0, italic > 0
            case "softbreak" | "hardbreak":
                paragraph.add_run(" ")
            case "image":
                paragraph.add_run(_to_xml_text(token.content))
            case "address":
                _write_address(paragraph, _to_xml_text(token.content))
            case _:
                pass


def _spell_out_links(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens, and behind the text of each link its address, which is readable on paper too."""
    addresses: list[str] = []
    for token in tokens:
        yield token
        if token.type == "link_open":
            addresses.append(str(token.attrGet("href") or ""))
        elif token.type == "link_close" and (address := addresses.pop()):
            yield Token("text", "", 0, content=" (")
            yield Token("address", "", 0, content=address)
            yield Token("text", "", 0, content=")")


def _write_address(paragraph: "Paragraph", address: str) -> None:
    """Write an address, as a link where it leads to the web or to somebody's mail: no other kind opens anything from a report."""
    run = paragraph.add_run(address)
    if not address.lower().startswith(_LINKED):
        return
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.oxml.ns import qn
    from docx.shared import RGBColor

    run.font.underline, run.font.color.rgb = True, RGBColor.from_string(_LINK_COLOR)
    link = _make_element("w:hyperlink")
    target = safe_link(address)
    relation = paragraph.part.relate_to(target, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    link.set(qn("r:id"), relation)
    paragraph._p.append(link)  # noqa: SLF001
    link.append(run._r)  # noqa: SLF001


def _make_element(name: str) -> "_Element":
    from docx.oxml import OxmlElement

    return OxmlElement(name)


def _to_xml_text(text: str) -> str:
    return _NOT_XML.sub(REPLACEMENT, replace_controls(text))
