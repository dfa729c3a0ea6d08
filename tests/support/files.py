"""Files of every format that is read, made on the spot."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from email.message import EmailMessage
from io import BytesIO

import docx
import openpyxl
import pptx
from docx.document import Document as WordDocument
from fpdf import FPDF
from fpdf.enums import AccessPermission
from openpyxl.workbook import Workbook
from pptx.presentation import Presentation
from pptx.util import Inches


def pdf(*pages: str, title: str | None = None, password: str | None = None) -> bytes:
    """A PDF of a page for each text; an empty text makes a page without one."""
    document = FPDF()
    document.set_font("helvetica")
    if title is not None:
        document.set_title(title)
    if password is not None:
        document.set_encryption(
            owner_password="owner", user_password=password, permissions=AccessPermission.none()
        )
    for text in pages:
        document.add_page()
        document.multi_cell(0, text=text)
    return bytes(document.output())


def word(document: WordDocument) -> bytes:
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def word_document(*blocks: str | Sequence[Sequence[str]]) -> bytes:
    """Texts become paragraphs, `# ` and `## ` before them headings, `- ` bullets; rows a table."""
    document = docx.Document()
    for block in blocks:
        if isinstance(block, str):
            _add_text(document, block)
        else:
            _add_table(document, block)
    return word(document)


def _add_text(document: WordDocument, text: str) -> None:
    marks = text.split(" ", 1)[0]
    if marks and set(marks) == {"#"}:
        document.add_heading(text[len(marks) + 1 :], level=len(marks))
    else:
        document.add_paragraph(text)


def _add_table(document: WordDocument, rows: Sequence[Sequence[str]]) -> None:
    table = document.add_table(rows=len(rows), cols=max(map(len, rows)))
    for i, row in enumerate(rows):
        for j, text in enumerate(row):
            table.cell(i, j).text = text


def presentation(made: Presentation) -> bytes:
    file = BytesIO()
    made.save(file)
    return file.getvalue()


def slides(*titled: tuple[str, str, str]) -> bytes:
    """A slide for each title, body and notes."""
    made = pptx.Presentation()
    for title, body, notes in titled:
        slide = made.slides.add_slide(made.slide_layouts[5])
        assert slide.shapes.title is not None
        slide.shapes.title.text = title
        box = slide.shapes.add_textbox(Inches(1), Inches(2), Inches(5), Inches(3))
        box.text_frame.text = body
        frame = slide.notes_slide.notes_text_frame
        assert frame is not None
        frame.text = notes
    return presentation(made)


Cell = str | int | float | bool | datetime | None


def workbook(sheets: Mapping[str, Sequence[Sequence[Cell]]]) -> bytes:
    made = openpyxl.Workbook()
    del made[made.sheetnames[0]]
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    return saved(made)


def saved(made: Workbook) -> bytes:
    file = BytesIO()
    made.save(file)
    return file.getvalue()


def email(
    subject: str, text: str, attachments: Mapping[str, bytes] | None = None, **headers: str
) -> bytes:
    message = EmailMessage()
    message["Subject"] = subject
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    for name, data in (attachments or {}).items():
        message.add_attachment(data, "application", "octet-stream", filename=name)
    return message.as_bytes()
