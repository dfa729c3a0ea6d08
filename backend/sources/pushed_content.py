"""What programs put in, as documents: texts are read at once, files by the sync."""

from backend.files.file_types import LARGEST_FILE, UploadedFile
from backend.schemas.new_document import MOST_SECTIONS, NewDocument, NewFile
from connectors.access import Access
from connectors.document import Document, Metadata, Person, Place, Section
from connectors.errors import InvalidInputError
from connectors.extraction.isolated import extract_isolated
from connectors.extraction.registry import HEAD_SIZE, TEXT, detect_media_type, extract, is_supported
from connectors.extraction.result import ExtractionError
from connectors.sources.ingest.pushed_documents import PushedDocument
from connectors.text_cleaning import to_one_line, to_utc
from indexing.runtime.deadline import Deadline

LONGEST_MARKUP = 200_000
"""Bytes of Markdown or HTML that are read in this process."""
_LATE = "there was no time to read it: send it again, with fewer documents in a request"
_TOO_MANY = f"it has more than {MOST_SECTIONS:,} sections: put it in as several documents"


def from_document(source: str, given: NewDocument, deadline: Deadline) -> PushedDocument:
    """Make a document of what was sent. Raises ExtractionError: its text cannot be read, or there is no time left."""
    sections = _read_sections(given, deadline)
    return PushedDocument(document=_make_document(source, given, given.media_type, sections))


def from_file(about: NewFile, file: UploadedFile) -> PushedDocument:
    """Make a document of a file, which is read later.

    Raises:
        InvalidInputError: it is empty, too long, or of a kind that is not read.
    """
    name, size = to_one_line(file.name), len(file.data)
    media_type = detect_media_type(name, file.data[:HEAD_SIZE])
    if not size:
        raise InvalidInputError(f"file: {name} is empty.")
    if size > LARGEST_FILE:
        raise InvalidInputError(
            f"file: {name} has {size:,} bytes; a file may have {LARGEST_FILE:,}."
        )
    if not is_supported(media_type):
        raise InvalidInputError(
            f"file: {name} is {media_type}, which cannot be read. Put in its text instead."
        )
    return PushedDocument(
        document=_make_document(about.source, about, media_type, ()), file=file.data
    )


def _make_document(
    source: str,
    given: NewDocument | NewFile,
    media_type: str,
    sections: tuple[Section, ...],
) -> Document:
    tags: Metadata = {"tags": given.tags} if given.tags else {}
    return Document(
        id=f"{source}:{given.id}",
        source=source,
        title=given.title,
        sections=sections,
        link=given.link,
        media_type=media_type,
        access=Access.all_of(given.readers),
        version="",
        metadata=tags,
        owners=tuple(
            Person(each.name, each.email and each.email.strip().lower()) for each in given.authors
        ),
        created_at=to_utc(given.created_at),
        updated_at=to_utc(given.updated_at),
    )


def _read_sections(given: NewDocument, deadline: Deadline) -> tuple[Section, ...]:
    if given.text is None:
        return tuple(
            Section(text=each.text, link=each.link or None, place=Place(heading_path=each.headings))
            for each in given.sections
        )
    if given.media_type == TEXT:
        if not given.text.strip():
            raise ExtractionError("it is empty")
        return (Section(text=given.text),)
    return _read_markup(given.text.encode(), given.media_type, deadline)


def _read_markup(data: bytes, media_type: str, deadline: Deadline) -> tuple[Section, ...]:
    seconds = deadline.remaining()
    if not seconds:
        raise ExtractionError(_LATE)
    if len(data) > LONGEST_MARKUP:
        sections = extract_isolated(data, media_type, seconds).sections
    else:
        sections = extract(data, media_type).sections
    if len(sections) > MOST_SECTIONS:
        raise ExtractionError(_TOO_MANY)
    return sections
