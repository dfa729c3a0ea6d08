"""Registry of the file formats, and the entry point for reading files.

A format is detected from a file's name and its first bytes.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TypeAlias, cast

from connectors.extraction.encoding import looks_like_text
from connectors.extraction.result import ExtractionError, ExtractionResult

TEXT = "text/plain"
MARKDOWN = "text/markdown"
HTML = "text/html"
CSV = "text/csv"
TSV = "text/tab-separated-values"
EML = "message/rfc822"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XML = "application/xml"
UNKNOWN = "application/octet-stream"

HEAD_SIZE = 4096
"""How many first bytes of a file are needed."""

_PACKAGES = {DOCX, PPTX, XLSX}
_BY_SUFFIX = MappingProxyType(
    {
        **dict.fromkeys((".md", ".markdown", ".mdx", ".mkd"), MARKDOWN),
        **dict.fromkeys((".html", ".htm", ".xhtml"), HTML),
        **dict.fromkeys((".docx", ".docm"), DOCX),
        **dict.fromkeys((".pptx", ".pptm"), PPTX),
        **dict.fromkeys((".xlsx", ".xlsm"), XLSX),
        **dict.fromkeys((".xml", ".xsd", ".xsl", ".rss"), XML),
        **dict.fromkeys((".json", ".jsonl"), "application/json"),
        **dict.fromkeys((".yaml", ".yml"), "application/yaml"),
        **dict.fromkeys((".jpg", ".jpeg"), "image/jpeg"),
        ".csv": CSV,
        ".tsv": TSV,
        ".eml": EML,
        ".pdf": PDF,
        # Text formats whose markup would be indexed as noise.
        ".rtf": "application/rtf",
        ".ipynb": "application/x-ipynb+json",
        ".mbox": "application/mbox",
        ".svg": "image/svg+xml",
        ".ics": "text/calendar",
        ".vcf": "text/vcard",
        # Formats that their first bytes do not identify.
        ".odt": "application/vnd.oasis.opendocument.text",
        ".ods": "application/vnd.oasis.opendocument.spreadsheet",
        ".odp": "application/vnd.oasis.opendocument.presentation",
        ".epub": "application/epub+zip",
        ".doc": "application/msword",
        ".xls": "application/vnd.ms-excel",
        ".ppt": "application/vnd.ms-powerpoint",
        ".msg": "application/vnd.ms-outlook",
        ".pst": "application/vnd.ms-outlook-pst",
        ".zip": "application/zip",
        ".png": "image/png",
    }
)
_BY_MAGIC = (
    (b"%PDF-", PDF),
    (b"{\\rtf", "application/rtf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"\x1f\x8b", "application/gzip"),
    (b"!BDN", "application/vnd.ms-outlook-pst"),
)
_ZIPPED = {*_PACKAGES, "application/epub+zip"} | {
    media_type for media_type in _BY_SUFFIX.values() if "opendocument" in media_type
}

Reader: TypeAlias = Callable[[bytes], ExtractionResult]
# Modules are imported with the first file of a format: their libraries take half a second together,
# which a command that reads no files must not spend.
_READERS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys((TEXT, XML), "text.read_text"),
        **dict.fromkeys(("application/json", "application/yaml"), "text.read_text"),
        MARKDOWN: "markdown.read_markdown",
        HTML: "html.read_html",
        CSV: "csv_tsv.read_csv",
        TSV: "csv_tsv.read_tsv",
        PDF: "pdf.read_pdf",
        DOCX: "docx.read_docx",
        PPTX: "pptx.read_pptx",
        XLSX: "xlsx.read_xlsx",
        EML: "eml.read_eml",
    }
)


def detect_media_type(name: str, head: bytes) -> str:
    """Return the media type of a file with this name and these first bytes (`HEAD_SIZE` of them suffice).

    The bytes decide if they are unambiguous, the name decides between formats that start alike. A file
    of unknown name that is text counts as plain text.
    """
    named = _BY_SUFFIX.get(PurePosixPath(name).suffix.lower())
    seen = next((found for magic, found in _BY_MAGIC if head.startswith(magic)), None)
    if seen == "application/zip" and named in _ZIPPED:
        return named
    if seen == "application/x-ole-storage" and named is not None:
        return named
    if seen is not None:
        return seen
    return named or (TEXT if head and looks_like_text(head) else UNKNOWN)


def is_supported(media_type: str) -> bool:
    return media_type in _READERS


def unsupported_format(media_type: str) -> ExtractionError:
    return ExtractionError(f"{media_type} is not a supported format")


def extract(data: bytes, media_type: str) -> ExtractionResult:
    """Extract the sections of a file, in order.

    Raises:
        ExtractionError: the file is empty, broken, protected, of another format than `media_type`,
            beyond a limit, or of an unsupported format; the message says which.
    """
    if not data:
        raise ExtractionError("the file is empty")
    return _load_reader(media_type)(data)


@cache
def _load_reader(media_type: str) -> Reader:
    if media_type not in _READERS:
        raise unsupported_format(media_type)
    module, name = _READERS[media_type].split(".")
    reader = getattr(import_module(f"connectors.extraction.{module}"), name)
    # An e-mail has attachments of all formats.
    return cast(Reader, partial(reader, extract=extract) if media_type == EML else reader)
