import subprocess
import sys
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.document import Section
from connectors.extraction import registry
from connectors.extraction.registry import detect_media_type, extract, is_supported
from connectors.extraction.result import ExtractionError
from tests.support.files import email, pdf, slides, word_document, workbook

FILES = {
    "a.txt": b"hello",
    "a.json": b'{"a": 1}',
    "a.yaml": b"a: 1",
    "a.xml": b"<a>hello</a>",
    "a.md": b"# hello",
    "a.html": b"<p>hello",
    "a.csv": b"a,b\n1,2",
    "a.tsv": b"a\tb\n1\t2",
    "a.pdf": pdf("hello"),
    "a.docx": word_document("hello"),
    "a.pptx": slides(("hello", "x", "")),
    "a.xlsx": workbook({"s": [["hello"]]}),
    "a.eml": email("hello", "text"),
}


def test_every_format_has_a_file_here() -> None:
    assert {detect_media_type(name, data) for name, data in FILES.items()} == set(registry._READERS)


@pytest.mark.parametrize("name", FILES)
def test_every_format_is_read_through_the_one_function(name: str) -> None:
    media_type = detect_media_type(name, FILES[name])
    assert is_supported(media_type)
    assert extract(FILES[name], media_type).sections


def sections_of(data: bytes, media_type: str) -> tuple[Section, ...]:
    """What is read of a file; nothing where it is refused."""
    try:
        return extract(data, media_type).sections
    except ExtractionError:
        return ()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("length", [1, 10, 100, 1000])
def test_a_file_cut_short_is_read_or_refused(name: str, length: int) -> None:
    sections = sections_of(FILES[name][:length], detect_media_type(name, FILES[name]))
    assert all(one.text.strip() for one in sections)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("media_type", list(registry._READERS))
def test_bytes_of_another_format_are_read_as_text_or_refused(name: str, media_type: str) -> None:
    sections = sections_of(FILES[name], media_type)
    assert "\0" not in "".join(one.text for one in sections)


@given(st.sampled_from(list(FILES)), st.integers(0, 5000), st.binary(min_size=1, max_size=20))
@settings(deadline=None, max_examples=60)
def test_a_damaged_file_is_read_or_refused(name: str, at: int, damage: bytes) -> None:
    data = FILES[name][:at] + damage + FILES[name][at + len(damage) :]
    sections = sections_of(data, detect_media_type(name, FILES[name]))
    assert all(one.text.encode() and "\0" not in one.text for one in sections)


@pytest.mark.parametrize("media_type", ["image/png", "application/rtf", "application/octet-stream"])
def test_other_formats_are_not_read_yet(media_type: str) -> None:
    assert not is_supported(media_type)
    with pytest.raises(ExtractionError, match=f"^{media_type} is not a supported format$"):
        extract(b"x", media_type)


def test_an_empty_file_of_any_format_is_unreadable() -> None:
    for media_type in registry._READERS:
        with pytest.raises(ExtractionError, match="the file is empty"):
            extract(b"", media_type)


def test_every_reader_exists() -> None:
    for name in registry._READERS.values():
        module, function = name.split(".")
        assert callable(getattr(import_module(f"connectors.extraction.{module}"), function))


def test_the_libraries_of_the_formats_are_loaded_only_when_needed() -> None:
    code = "import sys, connectors.registry; print([m for m in ('docx', 'pptx', 'openpyxl', 'pypdf') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.md", b"# a", registry.MARKDOWN),
        ("A.MD", b"# a", registry.MARKDOWN),
        ("a.html", b"<p>", registry.HTML),
        ("a.csv", b"a,b", registry.CSV),
        ("a.eml", b"From: a", registry.EML),
        ("a.txt", b"a", registry.TEXT),
        ("README", b"read me", registry.TEXT),
        ("a.py", b"import os", registry.TEXT),
        ("a", bytes(range(64)), registry.UNKNOWN),
        ("a", b"", registry.UNKNOWN),
        ("a.rtf", b"{\\rtf1", "application/rtf"),
        ("a.txt", b"{\\rtf1", "application/rtf"),
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/msword"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", registry.DOCX),
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
    assert detect_media_type("a.docx", word_document("x")) == registry.DOCX
    assert detect_media_type("a.xlsx", workbook({"s": [["x"]]})) == registry.XLSX
    assert detect_media_type("misnamed.txt", pdf("x")) == registry.PDF
