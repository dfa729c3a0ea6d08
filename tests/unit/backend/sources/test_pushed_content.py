"""Markdown and HTML that programs put in are read within bounds of time, of sections, and of this process."""

from collections.abc import Sequence

import pytest

from backend.schemas.new_document import NewDocument
from backend.sources import pushed_content
from backend.sources.pushed_content import LONGEST_MARKUP, from_document
from connectors.document import Section
from connectors.extraction.isolated import extract_isolated
from connectors.extraction.registry import HTML, MARKDOWN, extract
from connectors.extraction.result import ExtractionError, ExtractionResult
from indexing.runtime.deadline import Deadline


def _read(text: str, media_type: str = MARKDOWN, seconds: float = 60) -> Sequence[Section]:
    given = NewDocument.model_validate(
        {"id": "a", "title": "A", "text": text, "media_type": media_type, "readers": ["public"]}
    )
    return from_document("tickets", given, Deadline.after(seconds)).document.sections


@pytest.fixture
def isolated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what was read in a process of its own."""
    sizes = list[int]()

    def read(data: bytes, media_type: str, seconds: float) -> ExtractionResult:
        sizes.append(len(data))
        return extract_isolated(data, media_type, seconds)

    monkeypatch.setattr(pushed_content, "extract_isolated", read)
    return sizes


@pytest.mark.parametrize("media_type", [MARKDOWN, HTML])
def test_long_markup_is_read_in_a_process_of_its_own(media_type: str, isolated: list[int]) -> None:
    text = "# Blades\n\n" + "é" * (LONGEST_MARKUP // 2)
    assert _read(text, media_type) == extract(text.encode(), media_type).sections
    assert isolated == [len(text.encode())]
    _read("# Blades\n\nOf steel.", media_type)
    assert len(isolated) == 1


@pytest.mark.soak("slow")
@pytest.mark.parametrize("size", [5_000, LONGEST_MARKUP + 1])
def test_markup_of_too_many_sections_is_refused(size: int) -> None:
    assert len(_read("# a\n" * 1_000)) == 1_000
    with pytest.raises(ExtractionError, match="more than 1,000 sections"):
        _read("# a\n" * (size // 4 + 1))


def test_markup_is_not_read_once_the_time_of_its_request_is_over() -> None:
    with pytest.raises(ExtractionError, match="fewer documents"):
        _read("# Blades\n\nOf steel.", seconds=0)
    assert _read("Of steel.", "text/plain", seconds=0) == (Section(text="Of steel."),)
