"""The icon of each kind of document or source; the drawings are in `templates/icons.html`."""

from collections.abc import Mapping
from types import MappingProxyType

from connectors.extraction import registry

_OF_MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        registry.PDF: "pages",
        registry.DOCX: "pages",
        registry.XLSX: "table",
        registry.CSV: "table",
        registry.TSV: "table",
        registry.PPTX: "slides",
        registry.HTML: "globe",
        registry.XML: "code",
        registry.EML: "mail",
    }
)
_OF_SOURCE_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "folder": "folder",
        "git": "branch",
        "github": "branch",
        "imap": "mail",
        "ingest": "code",
        "mbox": "mail",
        "slack": "chat",
        "confluence": "pages",
        "feed": "globe",
        "web": "globe",
    }
)


def document_icon(media_type: str) -> str:
    return _OF_MEDIA_TYPES.get(media_type, "text")


def source_icon(kind: str) -> str:
    return _OF_SOURCE_KINDS.get(kind, "text")
