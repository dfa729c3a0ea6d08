"""A report as a Word document: its Markdown with headings, lists and links, and the sources under their numbers."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markdown_it.token import Token

from backend.research.record.final_report import FinalReport
from connectors.text_cleaning import replace_controls

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_MOST_HEADINGS = 9
_LISTS = {"bullet_list_open": "List Bullet", "ordered_list_open": "List Number"}
_DEEPEST_LIST = 3
"""Word's own styles of lists go so deep."""


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
            case "inline":
                _write_inline(_begin_paragraph(document, lists, heading), token.children or ())
            case "fence" | "code_block":
                document.add_paragraph(token.content.rstrip("\n"), style="No Spacing")
            case _:
                pass


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
                run = paragraph.add_run(token.content)
                run.bold, run.italic = bold > 0, italic > 0
            case "softbreak" | "hardbreak":
                paragraph.add_run(" ")
            case "image":
                paragraph.add_run(token.content)
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
            yield Token("text", "", 0, content=f" ({address})")
