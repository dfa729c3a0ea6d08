"""Extraction in a process of its own: the same sections, and no file that takes the server with it."""

import time

import pytest

from connectors.extraction import isolated
from connectors.extraction.isolated import extract_isolated
from connectors.extraction.registry import CSV, DOCX, MARKDOWN, extract
from connectors.extraction.result import ExtractionError


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        ("# Über\n\nText “here”.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n".encode(), MARKDOWN),
        (b"---\ndate: 2024-06-08\n---\nText", MARKDOWN),
        (b"a,b\n1,2\n3,4\n", CSV),
    ],
)
def test_sections_are_those_of_the_reader(data: bytes, media_type: str) -> None:
    there, here = extract_isolated(data, media_type, 30), extract(data, media_type)
    assert (there.sections, there.title, there.created_at) == (
        here.sections,
        here.title,
        here.created_at,
    )


def test_the_reason_is_kept() -> None:
    with pytest.raises(ExtractionError, match="the file is empty"):
        extract_isolated(b"", MARKDOWN, 30)
    with pytest.raises(ExtractionError, match="not a valid"):
        extract_isolated(b"PK\x03\x04 broken", DOCX, 30)


def test_a_process_that_dies_or_lingers_is_an_unreadable_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isolated, "_PROGRAM", "import os; os.abort()")
    with pytest.raises(ExtractionError, match="too much memory or time, or it is damaged"):
        extract_isolated(b"x", MARKDOWN, 30)
    monkeypatch.setattr(isolated, "_PROGRAM", "x = bytearray(1); import time; time.sleep(60)")
    began = time.monotonic()
    with pytest.raises(ExtractionError, match="takes too long"):
        extract_isolated(b"x", MARKDOWN, 0.2)
    assert time.monotonic() - began < 30


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    program = isolated._PROGRAM.replace(
        "extract_standard_input(sys.argv[1])",
        "extract_standard_input(sys.argv[1]); bytearray(3 << 30)",
    )
    monkeypatch.setattr(isolated, "_PROGRAM", program)
    with pytest.raises(ExtractionError, match="too much memory"):
        extract_isolated(b"text", MARKDOWN, 30)
