"""Plain text: one section, as it stands."""

from connectors.document import Place, Span
from connectors.extraction.encoding import decode
from connectors.extraction.result import CannotRead, Extracted, section


def read_text(data: bytes) -> Extracted:
    """One section whose text is exactly its span of the decoded file.

    Raises:
        CannotRead: not text, or nothing in it.
    """
    text = decode(data)
    body = text.strip()
    if not body:
        raise CannotRead("the file is empty" if not text else "the file holds only blank space")
    start = text.index(body)
    return Extracted(sections=(section(body, Place(span=Span(start, start + len(body)))),))
