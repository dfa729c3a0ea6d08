"""Read the text layer of PDF files page by page."""

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

_FORMAT = "PDF"
_MOST_PAGES = 20_000
_LONGEST_TEXT = 100_000_000
_CPU_SECONDS = 120.0

# It logs what it repairs; what it cannot repair it raises as well.
logging.getLogger("pypdf").setLevel(logging.CRITICAL)


class _Pages:
    """Sections of the pages read so far, and the numbers of pages without text."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self.empty: list[int] = []
        self.broken: list[int] = []

    def metadata(self) -> Metadata:
        pages = {"pages_without_text": self.empty, "pages_broken": self.broken}
        return {name: _format_ranges(numbers) for name, numbers in pages.items() if numbers}


def read_pdf(data: bytes) -> ExtractionResult:
    """Make a section of each page that has text. Pages without text and broken pages are listed in
    the metadata.

    Raises:
        ExtractionError: the file is broken, protected by a password, without text, or beyond a limit.
    """
    began = datetime.now(UTC)
    try:
        with convert_parser_errors(_FORMAT, PyPdfError):
            reader = _open(data)
            pages = _read_pages(reader)
            return _add_properties(reader, pages, began)
    except DependencyError as error:
        raise ExtractionError(
            "it is encrypted with AES, which this installation cannot open"
        ) from error


def _open(data: bytes) -> PdfReader:
    """Open a file; one protected only against copying opens with an empty password."""
    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise ExtractionError("it is protected by a password")
    if len(reader.pages) > _MOST_PAGES:
        raise ExtractionError(f"it has more than {_MOST_PAGES:,} pages")
    return reader


def _read_pages(reader: PdfReader) -> _Pages:
    pages = _Pages()
    check = _make_time_limit(_CPU_SECONDS)
    length = 0
    for number, page in enumerate(reader.pages, start=1):
        text = _read_page(page, check)
        if text is None:
            pages.broken.append(number)
        elif text.strip():
            pages.sections.append(make_section(text.strip(), Place(page=number)))
        else:
            pages.empty.append(number)
        length += len(text or "")
        if length > _LONGEST_TEXT:
            raise ExtractionError(f"it contains more than {_LONGEST_TEXT:,} characters")
    if not pages.sections:
        raise ExtractionError(
            "its pages are broken"
            if pages.broken
            else "it has no text; a scanned document needs text recognition (OCR), which is not supported"
        )
    return pages


def _read_page(page: PageObject, check: Callable[..., None]) -> str | None:
    """Return the text of a page, or None if the page is broken."""
    check()
    try:
        with convert_parser_errors(_FORMAT, PyPdfError):
            text = page.extract_text(visitor_operand_before=check)
    except ExtractionError:
        check()
        return None
    check()
    return text


def _make_time_limit(seconds: float) -> Callable[..., None]:
    """Return a check that raises ExtractionError once this thread has used so much processor time."""
    end = time.thread_time() + seconds

    def check(*_operation: object) -> None:
        if time.thread_time() > end:
            raise ExtractionError(f"reading it takes more than {seconds:.0f} seconds")

    return check


def _add_properties(reader: PdfReader, pages: _Pages, began: datetime) -> ExtractionResult:
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
        created_at=_read_date(lambda: info.creation_date, began),
        updated_at=_read_date(lambda: info.modification_date, began),
    )


def _read_date(get: Callable[[], datetime | None], began: datetime) -> datetime | None:
    try:
        return clean_time(get(), began)
    except (ValueError, OverflowError, TypeError):
        return None


def _format_ranges(numbers: list[int]) -> str:
    """Format `[1, 2, 3, 7]` as `1-3, 7`."""
    return ", ".join(f"{a}-{b}" if b > a else str(a) for a, b in _iterate_runs(numbers))


def _iterate_runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
