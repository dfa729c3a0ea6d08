"""Files that a server sends in the place of a page."""

import time

import pytest

from backend.web_search.file_content import ServedFile, read_file
from connectors.extraction.registry import MARKDOWN
from connectors.extraction.result import ExtractionError
from indexing.runtime.deadline import Deadline


def _read_markdown(text: str) -> tuple[str, str]:
    file = ServedFile("https://a.example/tides.md", MARKDOWN, "utf-8", text.encode())
    found = read_file(file, Deadline.after(30.0))
    return found.title, found.text


def test_markdown_is_read_as_it_is_written() -> None:
    written = "# Tides\n\nThe *sea* rises.\n\n" + "- a wave\n" * 10_000
    assert _read_markdown(written) == ("Tides", written.strip())


@pytest.mark.parametrize("text", ["", " \n" * 20_000])
def test_empty_markdown_is_said_to_be_so(text: str) -> None:
    with pytest.raises(ExtractionError):
        _read_markdown(text)


def test_the_beginning_of_markdown_alone_is_parsed() -> None:
    def seconds(lines: int) -> float:
        started = time.process_time()
        _read_markdown("  - a\n" * lines)
        return time.process_time() - started

    short = min(seconds(5_000) for _ in range(2))
    # Parsing all of it takes ten times as long.
    assert min(seconds(50_000) for _ in range(2)) < 4 * short + 0.1
