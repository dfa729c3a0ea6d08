from datetime import UTC, datetime
from io import BytesIO

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from connectors.document import Person
from connectors.extraction.docx import read_docx
from connectors.extraction.result import ExtractionError, ExtractionResult
from tests.support.files import word, word_document


def outline(read: ExtractionResult) -> list[tuple[tuple[str, ...], str, str]]:
    return [(one.place.heading_path, one.kind, one.text) for one in read.sections]


def test_headings_paragraphs_and_tables_stand_in_their_order() -> None:
    data = word_document(
        "Before.",
        "# Travel",
        "Book early.",
        [["City", "Rate"], ["Bonn", "90"]],
        "After.",
        "## Rail",
        "Second class.",
        "# Empty",
    )
    assert outline(read_docx(data)) == [
        ((), "text", "Before."),
        (("Travel",), "text", "Book early."),
        (("Travel",), "table", "| City | Rate |\n| --- | --- |\n| Bonn | 90 |"),
        (("Travel",), "text", "After."),
        (("Travel", "Rail"), "text", "Second class."),
        (("Empty",), "text", "Empty"),
    ]
    assert read_docx(data).title == "Travel"


def test_properties_are_those_of_the_author_not_of_the_library() -> None:
    document = docx.Document()
    document.add_paragraph("x")
    assert read_docx(word(document)).authors == ()
    assert read_docx(word(document)).updated_at is None
    document.core_properties.title = "Travel 2026"
    document.core_properties.author = "Ann Lee; Bo"
    document.core_properties.modified = datetime(2026, 2, 3, 4, 5)
    document.core_properties.keywords = "rail"
    read = read_docx(word(document))
    assert read.title == "Travel 2026"
    assert read.authors == (Person("Ann Lee"), Person("Bo"))
    assert read.updated_at == datetime(2026, 2, 3, 4, 5, tzinfo=UTC)
    assert read.metadata == {"keywords": "rail"}


def test_a_title_stands_above_the_headings() -> None:
    document = docx.Document()
    document.add_heading("Handbook", level=0)
    document.add_heading("Leave", level=1)
    document.add_paragraph("Thirty days.")
    assert outline(read_docx(word(document))) == [(("Handbook", "Leave"), "text", "Thirty days.")]


def test_lists_merged_cells_headers_and_comments() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("first")
    paragraph.paragraph_format.element.get_or_add_pPr().append(
        parse_xml(f'<w:numPr {nsdecls("w")}><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr>')
    )
    table = document.add_table(rows=3, cols=2)
    for i, text in enumerate(["Region", "Office", "North", "Kiel", "", "Bonn"]):
        table.cell(i // 2, i % 2).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    document.sections[0].header.paragraphs[0].text = "Internal"
    run = document.add_paragraph("Ask first.").runs[0]
    document.add_comment(run, text="Whom?", author="Bo")
    assert outline(read_docx(word(document))) == [
        ((), "text", "  - first"),
        ((), "table", "| Region | Office |\n| --- | --- |\n| North | Kiel |\n| North | Bonn |"),
        ((), "text", "Ask first."),
        (("Comments",), "text", "Whom?"),
        (("Header and footer",), "text", "Internal"),
    ]


def test_deleted_text_is_not_read() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("kept")
    paragraph.paragraph_format.element.append(
        parse_xml(f"<w:del {nsdecls('w')}><w:r><w:t>gone</w:t></w:r></w:del>")
    )
    assert read_docx(word(document)).sections[0].text == "kept"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"plain", "not a valid Word document"),
        (word_document("x")[:2000], "not a valid Word document"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "password"),
        (word_document(), "no text"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, says: str) -> None:
    with pytest.raises(ExtractionError, match=says):
        read_docx(data)


def test_a_workbook_under_a_wrong_name_is_no_word_document() -> None:
    file = BytesIO()
    docx.Document().save(file)
    with pytest.raises(ExtractionError):
        read_docx(file.getvalue().replace(b"word/document.xml", b"word/documint.xml"))
