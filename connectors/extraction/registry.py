"""Bytes and a media type to sections: the one door to the readers of all formats."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import TypeAlias, cast

from connectors.extraction import media_types
from connectors.extraction.result import ExtractionError, ExtractionResult

Reader: TypeAlias = Callable[[bytes], ExtractionResult]

# By name, and loaded when the first file of a format comes: the libraries behind them take half a
# second together, which a command that reads no file must not pay.
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
    return ExtractionError(f"{media_type} is not a format that Quarry reads yet")


def extract(data: bytes, media_type: str) -> ExtractionResult:
    """What a file says, as sections in its own order.

    Raises:
        ExtractionError: the file is empty, broken, protected, of another format than `media_type`,
            beyond a limit, or of a format that is not read yet; the message says which.
    """
    if not data:
        raise ExtractionError("the file is empty")
    return _reader(media_type)(data)


@cache
def _reader(media_type: str) -> Reader:
    if media_type not in _READERS:
        raise unsupported_format(media_type)
    module, name = _READERS[media_type].split(".")
    reader = getattr(import_module(f"connectors.extraction.{module}"), name)
    # An e-mail holds files of all formats.
    return cast(
        Reader, partial(reader, extract=extract) if media_type == media_types.EML else reader
    )
