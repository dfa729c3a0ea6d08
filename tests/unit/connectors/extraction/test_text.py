import pytest

from connectors.document import Span
from connectors.extraction.result import ExtractionError
from connectors.extraction.text import read_text


def test_a_text_is_one_section_at_its_span() -> None:
    (section,) = read_text(b"\n\n first line\nsecond\n\n").sections
    assert section.text == "first line\nsecond"
    assert section.place.span == Span(3, 20)


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"", "is empty"), (b" \n\t\n", "only blank space"), (b"\xef\xbb\xbf", "empty")],
)
def test_nothing_to_read_is_said(data: bytes, says: str) -> None:
    with pytest.raises(ExtractionError, match=says):
        read_text(data)
