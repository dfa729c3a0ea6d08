"""Read plain text as one section."""

from connectors.document import Place, Span
from connectors.extraction.encoding import decode
from connectors.extraction.result import ExtractionError, ExtractionResult, make_section


def read_text(data: bytes) -> ExtractionResult:
    """Make one section, whose text is exactly its span of the decoded file.

    Raises:
        ExtractionError: the file is not text, or holds nothing.
    """
    text = decode(data)
    body = text.strip()
    if not body:
        raise ExtractionError(
            "the file is empty" if not text else "the file contains only blank space"
        )
    start = text.index(body)
    return ExtractionResult(
        sections=(make_section(body, Place(span=Span(start, start + len(body)))),)
    )
