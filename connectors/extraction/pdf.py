"""PDF, page by page, from its text layer."""

import logging
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import BytesIO

from pypdf import PageObject, PasswordType, PdfReader
from pypdf.errors import DependencyError, PyPdfError

from connectors.document import Metadata, Place, Section
from connectors.extraction.office_metadata import (
    clean_authors,
    clean_metadata,
    clean_time,
    clean_title,
)
from connectors.extraction.parser_guard import convert_parser_errors
from connectors.extraction.result import ExtractionError, ExtractionResult, make_section

_WHAT = "PDF"
_MOST_PAGES = 20_000
_LONGEST_TEXT = 100_000_000
_CPU_SECONDS = 120.0

# What it reports there is either repaired or raised.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


class _Pages:
    """What has been read of a file so far."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self.empty: list[int] = []
        self.broken: list[int] = []

    def metadata(self) -> Metadata:
        pages = {"pages_without_text": self.empty, "pages_broken": self.broken}
        return {name: _ranges(numbers) for name, numbers in pages.items() if numbers}


def read_pdf(data: bytes) -> ExtractionResult:
    """A section for each page that has text. The numbers of pages without text, and of broken
    ones beside readable ones, stand in the metadata.

    Raises:
        ExtractionError: broken, encrypted with a password, without any text, or beyond a limit.
    """
    began = datetime.now(UTC)
    try:
        with convert_parser_errors(_WHAT, PyPdfError):
            reader = _opened(data)
            pages = _read_pages(reader)
            return _with_properties(reader, pages, began)
    except DependencyError as error:
        raise ExtractionError(
            "it is encrypted with AES, which this installation cannot open"
        ) from error


def _opened(data: bytes) -> PdfReader:
    """A file that is only protected against copying opens with an empty password."""
    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise ExtractionError("it is protected by a password")
    if len(reader.pages) > _MOST_PAGES:
        raise ExtractionError(f"it has more than {_MOST_PAGES:,} pages")
    return reader


def _read_pages(reader: PdfReader) -> _Pages:
    pages = _Pages()
    check = _time_limit(_CPU_SECONDS)
    length = 0
    for number, page in enumerate(reader.pages, start=1):
        text = _page_text(page, check)
        if text is None:
            pages.broken.append(number)
        elif text.strip():
            pages.sections.append(make_section(text.strip(), Place(page=number)))
        else:
            pages.empty.append(number)
        length += len(text or "")
        if length > _LONGEST_TEXT:
            raise ExtractionError(f"it holds more than {_LONGEST_TEXT:,} characters")
    if not pages.sections:
        raise ExtractionError(
            "its pages are broken"
            if pages.broken
            else "it has no text; a scanned document needs text recognition, which is not there yet"
        )
    return pages


def _page_text(page: PageObject, check: Callable[..., None]) -> str | None:
    """The text of a page; None when the page is broken."""
    check()
    try:
        with convert_parser_errors(_WHAT, PyPdfError):
            text = page.extract_text(visitor_operand_before=check)
    except ExtractionError:
        check()
        return None
    check()
    return text


def _time_limit(seconds: float) -> Callable[..., None]:
    """A check that raises ExtractionError once this thread has spent so much on the processor."""
    end = time.thread_time() + seconds

    def check(*_operation: object) -> None:
        if time.thread_time() > end:
            raise ExtractionError(f"reading it takes more than {seconds:.0f} seconds")

    return check


def _with_properties(reader: PdfReader, pages: _Pages, began: datetime) -> ExtractionResult:
    info = reader.metadata
    sections = tuple(pages.sections)
    if info is None:
        return ExtractionResult(sections=sections, metadata=pages.metadata())
    return ExtractionResult(
        sections=sections,
        title=clean_title(info.title),
        metadata={
            **clean_metadata(subject=info.subject, keywords=info.get("/Keywords")),
            **pages.metadata(),
        },
        authors=clean_authors([info.author]),
        created_at=_date(lambda: info.creation_date, began),
        updated_at=_date(lambda: info.modification_date, began),
    )


def _date(get: Callable[[], datetime | None], began: datetime) -> datetime | None:
    try:
        return clean_time(get(), began)
    except (ValueError, OverflowError, TypeError):
        return None


def _ranges(numbers: list[int]) -> str:
    """`[1, 2, 3, 7]` as `1-3, 7`."""
    return ", ".join(f"{a}-{b}" if b > a else str(a) for a, b in _runs(numbers))


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
