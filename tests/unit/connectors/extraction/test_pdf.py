import pytest
from fpdf import FPDF

from connectors.extraction import pdf as pdf_module
from connectors.extraction.pdf import read_pdf
from connectors.extraction.result import ExtractionError
from tests.support.files import pdf


def test_each_page_with_text_is_a_section() -> None:
    read = read_pdf(pdf("Travel policy", "", "Rates: 90 EUR", title="Travel 2026"))
    assert [(one.place.page, one.text) for one in read.sections] == [
        (1, "Travel policy"),
        (3, "Rates: 90 EUR"),
    ]
    assert read.title == "Travel 2026"
    assert read.metadata == {"pages_without_text": "2"}


@pytest.mark.parametrize("title", ["untitled", "(anonymous)", "Microsoft Word - a.docx", "a.pdf"])
def test_a_title_that_a_program_put_there_is_none(title: str) -> None:
    assert read_pdf(pdf("x", title=title)).title is None


def test_a_scan_is_unreadable() -> None:
    with pytest.raises(ExtractionError, match="no text; a scanned document"):
        read_pdf(pdf("", ""))


def test_a_password_is_named_as_the_reason() -> None:
    with pytest.raises(ExtractionError, match="protected by a password"):
        read_pdf(pdf("secret", password="sesame"))


def test_a_file_that_is_only_protected_against_copying_is_read() -> None:
    assert read_pdf(pdf("open to read", password="")).sections[0].text == "open to read"


@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-1.7",
        b"%PDF-1.7\n%%EOF",
        b"plain text",
        pdf("x")[:300],
        pdf("x").replace(b"/Page", b"/Pug"),
    ],
)
def test_a_broken_file_is_unreadable(data: bytes) -> None:
    with pytest.raises(ExtractionError):
        read_pdf(data)


def test_a_broken_page_does_not_hide_the_others() -> None:
    made = FPDF()
    made.set_compression(False)
    made.set_font("helvetica")
    for text in ("first", "second", "third"):
        made.add_page()
        made.cell(text=text)
    # an array that never ends and holds a word of no meaning, of the same length
    data = bytes(made.output()).replace(b"(second) Tj", b"[28 FR 36 T")
    read = read_pdf(data)
    assert [(one.place.page, one.text) for one in read.sections] == [(1, "first"), (3, "third")]
    assert read.metadata == {"pages_broken": "2"}


def test_time_spent_on_one_file_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_module, "_CPU_SECONDS", -1.0)
    with pytest.raises(ExtractionError, match="more than -1 seconds"):
        read_pdf(pdf("x"))


def test_pages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_module, "_MOST_PAGES", 1)
    with pytest.raises(ExtractionError, match="more than 1 pages"):
        read_pdf(pdf("a", "b"))
