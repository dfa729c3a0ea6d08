import pytest

from connectors.extraction import media_types
from connectors.extraction.media_types import detect_media_type
from tests.support.files import pdf, word_document, workbook


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.md", b"# a", media_types.MARKDOWN),
        ("A.MD", b"# a", media_types.MARKDOWN),
        ("a.html", b"<p>", media_types.HTML),
        ("a.csv", b"a,b", media_types.CSV),
        ("a.eml", b"From: a", media_types.EML),
        ("a.txt", b"a", media_types.TEXT),
        ("README", b"read me", media_types.TEXT),
        ("a.py", b"import os", media_types.TEXT),
        ("a", bytes(range(64)), media_types.UNKNOWN),
        ("a", b"", media_types.UNKNOWN),
        ("a.rtf", b"{\\rtf1", "application/rtf"),
        ("a.txt", b"{\\rtf1", "application/rtf"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/msword"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", media_types.DOCX),
        ("a.zip", b"PK\x03\x04", "application/zip"),
        ("a.md", b"PK\x03\x04", "application/zip"),
        ("a.png", b"\x89PNG", "image/png"),
        ("a.ipynb", b"{}", "application/x-ipynb+json"),
    ],
)
def test_the_name_and_the_first_bytes_tell_the_format(
    name: str, head: bytes, expected: str
) -> None:
    assert detect_media_type(name, head) == expected


def test_office_files_and_pdfs_are_known_by_their_bytes() -> None:
    assert detect_media_type("a.docx", word_document("x")) == media_types.DOCX
    assert detect_media_type("a.xlsx", workbook({"s": [["x"]]})) == media_types.XLSX
    assert detect_media_type("misnamed.txt", pdf("x")) == media_types.PDF
