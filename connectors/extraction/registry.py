"""Registry of the file formats that can be read, and the entry point for reading files."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import TypeAlias, cast

from connectors.extraction import media_types
from connectors.extraction.result import ExtractionError, ExtractionResult

Reader: TypeAlias = Callable[[bytes], ExtractionResult]

# Modules are imported with the first file of a format: their libraries take half a second together,
# which a command that reads no files must not spend.
_READERS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys((media_types.TEXT, media_types.XML), "text.read_text"),
        **dict.fromkeys(("application/json", "application/yaml"), "text.read_text"),
        media_types.MARKDOWN: "markdown.read_markdown",
        media_types.HTML: "html.read_html",
        media_types.CSV: "csv_tsv.read_csv",
        media_types.TSV: "csv_tsv.read_tsv",
        media_types.PDF: "pdf.read_pdf",
        media_types.DOCX: "docx.read_docx",
        media_types.PPTX: "pptx.read_pptx",
        media_types.XLSX: "xlsx.read_xlsx",
        media_types.EML: "eml.read_eml",
    }
)


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
    return cast(
        Reader, partial(reader, extract=extract) if media_type == media_types.EML else reader
    )
