"""Make the PDF, DOCX and XLSX files of the sample handbook from their source texts.

Run as `python -m tests.support.make_handbook` and commit the result. Nothing of the machine or the
moment enters the files, so the same libraries make the same bytes.
"""

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

import docx
import yaml
from docx.document import Document as WordDocument
from docx.enum.text import WD_BREAK
from fpdf import FPDF, FontFace
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from openpyxl import Workbook
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.worksheet import Worksheet

from backend.sample import handbook

SOURCES = Path(__file__).parent / "handbook_sources"
MADE_BY = "Karsthal document service"

# The earliest time that a ZIP archive can represent.
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)
ZIP_SYSTEM_UNIX = 3
ZIP_FILE_MODE = 0o644 << 16


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str


@dataclass(frozen=True, slots=True)
class Bullet:
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PageBreak:
    pass


Block: TypeAlias = Heading | Paragraph | Bullet | Table | PageBreak


@dataclass(frozen=True, slots=True)
class Article:
    """A source of a PDF or DOCX file: Markdown, where `***` begins a new page."""

    title: str
    author: str
    written: datetime
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]


@dataclass(frozen=True, slots=True)
class Book:
    """A source of an XLSX file."""

    title: str
    author: str
    written: datetime
    sheets: tuple[Sheet, ...]


def main() -> None:
    for path in write_all(handbook()):
        print(path)


def write_all(folder: Path) -> Iterator[Path]:
    """Write every file that has a source into `folder`, and yield its path."""
    for source in sorted(path for path in SOURCES.rglob("*") if path.is_file()):
        target = folder / source.relative_to(SOURCES).with_suffix("")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(made(source.read_text("utf-8"), target.suffix))
        yield target


def made(source: str, suffix: str) -> bytes:
    match suffix:
        case ".pdf":
            return pdf_bytes(read_article(source))
        case ".docx":
            return docx_bytes(read_article(source))
        case ".xlsx":
            return xlsx_bytes(read_book(source))
        case _:
            raise ValueError(
                f"no writer for {suffix!r}; sources end in .pdf.md, .docx.md, .xlsx.yaml"
            )


def read_article(source: str) -> Article:
    _, front_matter, body = source.split("---\n", 2)
    about = yaml.safe_load(front_matter)
    tree = SyntaxTreeNode(MarkdownIt("commonmark").enable("table").parse(body))
    blocks = tuple(block for node in tree.children for block in blocks_of(node))
    return Article(about["title"], about["author"], morning_of(about["date"]), blocks)


def read_book(source: str) -> Book:
    about = yaml.safe_load(source)
    sheets = tuple(
        Sheet(sheet["name"], tuple(sheet["header"]), tuple(map(tuple, sheet["rows"])))
        for sheet in about["sheets"]
    )
    return Book(about["title"], about["author"], morning_of(about["date"]), sheets)


def morning_of(day: date) -> datetime:
    return datetime.combine(day, time(8, 0), UTC)


def blocks_of(node: SyntaxTreeNode) -> Iterator[Block]:
    match node.type:
        case "heading":
            yield Heading(int(node.tag.removeprefix("h")), text_of(node))
        case "paragraph":
            yield Paragraph(text_of(node))
        case "bullet_list":
            yield from (Bullet(text_of(item.children[0])) for item in node.children)
        case "table":
            rows = (row for part in node.children for row in part.children)
            yield Table(tuple(tuple(map(text_of, row.children)) for row in rows))
        case "hr":
            yield PageBreak()
        case _:
            raise ValueError(f"no block for Markdown's {node.type!r}")


def text_of(node: SyntaxTreeNode) -> str:
    return " ".join(child.content for child in node.children)


def pdf_bytes(article: Article) -> bytes:
    pdf = FPDF(format="A4")
    # Uncompressed, the bytes do not depend on the version of zlib.
    pdf.set_compression(False)
    pdf.set_creation_date(article.written)
    pdf.set_title(article.title)
    pdf.set_author(article.author)
    pdf.set_producer(MADE_BY)
    pdf.add_page()
    for block in article.blocks:
        add_to_pdf(pdf, block)
    return bytes(pdf.output())


def add_to_pdf(pdf: FPDF, block: Block) -> None:
    pdf.set_font("Helvetica", size=11)
    match block:
        case Heading(level, text):
            pdf.ln(3)
            pdf.start_section(text, level=level - 1)
            pdf.set_font("Helvetica", style="B", size=20 - 3 * level)
            pdf.multi_cell(0, 9, text, align="L", new_x="LMARGIN", new_y="NEXT")
        case Paragraph(text):
            pdf.multi_cell(0, 6, text, align="L", new_x="LMARGIN", new_y="NEXT")
            pdf.ln(2)
        case Bullet(text):
            pdf.multi_cell(0, 6, f"- {text}", align="L", new_x="LMARGIN", new_y="NEXT")
        case Table(rows):
            with pdf.table(rows, text_align="LEFT", headings_style=FontFace(emphasis="BOLD")):
                pass
            pdf.ln(2)
        case PageBreak():
            pdf.add_page()


def docx_bytes(article: Article) -> bytes:
    word = docx.Document()
    about = word.core_properties
    about.title, about.author, about.last_modified_by = article.title, article.author, MADE_BY
    # Word properties are kept without a zone and read as UTC.
    about.created = about.modified = article.written.replace(tzinfo=None)
    about.comments = ""
    for block in article.blocks:
        add_to_docx(word, block)
    unpacked = BytesIO()
    word.save(unpacked)
    return repacked(unpacked.getvalue(), article.written)


def add_to_docx(word: WordDocument, block: Block) -> None:
    match block:
        case Heading(level, text):
            word.add_heading(text, level)
        case Paragraph(text):
            word.add_paragraph(text)
        case Bullet(text):
            word.add_paragraph(text, style="List Bullet")
        case Table(rows):
            table = word.add_table(rows=len(rows), cols=len(rows[0]), style="Table Grid")
            for row, texts in zip(table.rows, rows, strict=True):
                for cell, text in zip(row.cells, texts, strict=True):
                    cell.text = text
        case PageBreak():
            word.add_paragraph().add_run().add_break(WD_BREAK.PAGE)


def xlsx_bytes(book: Book) -> bytes:
    workbook = Workbook()
    workbook.remove(workbook.worksheets[0])
    about = workbook.properties
    about.title, about.creator, about.lastModifiedBy = book.title, book.author, MADE_BY
    about.created = book.written.replace(tzinfo=None)
    for sheet in book.sheets:
        fill(workbook.create_sheet(sheet.name), sheet)
    unpacked = BytesIO()
    workbook.save(unpacked)
    return repacked(unpacked.getvalue(), book.written)


def fill(worksheet: Worksheet, sheet: Sheet) -> None:
    worksheet.append(sheet.header)
    for row in sheet.rows:
        worksheet.append([None if cell == "" else cell for cell in row])
    for cell in worksheet[1]:
        cell.font = Font(bold=True)
    worksheet.freeze_panes = "A2"
    for number, column in enumerate(zip(sheet.header, *sheet.rows, strict=True), start=1):
        widest = max(len(str(cell)) for cell in column)
        worksheet.column_dimensions[get_column_letter(number)].width = widest + 2


def repacked(archive: bytes, written: datetime) -> bytes:
    """The same ZIP archive with every date in it set to `written` or to the ZIP epoch."""
    packed = BytesIO()
    with zipfile.ZipFile(BytesIO(archive)) as old, zipfile.ZipFile(packed, "w") as new:
        for name in old.namelist():
            entry = zipfile.ZipInfo(name, ZIP_EPOCH)
            entry.create_system, entry.external_attr = ZIP_SYSTEM_UNIX, ZIP_FILE_MODE
            content = with_modified(old.read(name), written)
            new.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
    return packed.getvalue()


def with_modified(content: bytes, written: datetime) -> bytes:
    """The core properties with `written` as the time of the last change; all else as it is.

    openpyxl writes the present moment there, whatever it is given.
    """
    stamp = written.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    return re.sub(rb"(<dcterms:modified[^>]*>)[^<]*", rb"\g<1>" + stamp, content)


if __name__ == "__main__":
    main()
