import zipfile
from io import BytesIO
from types import ModuleType

import pytest

from connectors.extraction import docx as word_module
from connectors.extraction import pptx, xlsx, zip_limits
from connectors.extraction.registry import DOCX, PPTX, XLSX, extract
from connectors.extraction.result import ExtractionError
from connectors.extraction.zip_limits import check_zip_limits
from tests.support.files import word_document


def zipped(**members: bytes) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            made.writestr(name.replace("__", "/").replace("_xml", ".xml"), data)
    return file.getvalue()


def test_an_ordinary_document_passes() -> None:
    check_zip_limits(word_document("x"), "Word document", 10_000_000)


@pytest.mark.parametrize(
    ("media_type", "module"), [(DOCX, word_module), (PPTX, pptx), (XLSX, xlsx)]
)
def test_a_bomb_is_refused_before_it_is_unpacked(
    media_type: str, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LARGEST_PART", 1_000_000)
    bomb = zipped(word__document_xml=b" " * 10_000_000)
    assert len(bomb) < 20_000
    with pytest.raises(ExtractionError, match="a part of it unpacks to more than 1,000,000 bytes"):
        extract(bomb, media_type)


def test_many_parts_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_limits, "_LARGEST_UNPACKED", 100)
    with pytest.raises(ExtractionError, match="unpacks to more than 100 bytes"):
        check_zip_limits(zipped(a=b"x" * 60, b=b"x" * 60), "workbook", 1000)


def test_the_number_of_parts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_limits, "_MOST_MEMBERS", 1)
    with pytest.raises(ExtractionError, match="more than 1 files"):
        check_zip_limits(zipped(a=b"", b=b""), "workbook", 1000)


def test_entities_are_refused() -> None:
    laughs = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "ha">]><a>&b;</a>'
    with pytest.raises(ExtractionError, match="declares a document type"):
        check_zip_limits(zipped(word__document_xml=laughs), "Word document", 1000)
