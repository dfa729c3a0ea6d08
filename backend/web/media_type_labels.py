"""What media types are called by people, and in addresses."""

from collections.abc import Mapping
from types import MappingProxyType

from connectors.extraction import media_types

NAMES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        media_types.PDF: ("pdf", "PDF"),
        media_types.DOCX: ("word", "Word"),
        media_types.XLSX: ("excel", "Excel"),
        media_types.PPTX: ("powerpoint", "PowerPoint"),
        media_types.HTML: ("web", "Web page"),
        media_types.MARKDOWN: ("markdown", "Markdown"),
        media_types.TEXT: ("text", "Plain text"),
        media_types.EML: ("mail", "Mail"),
        media_types.CSV: ("csv", "CSV"),
        media_types.TSV: ("tsv", "TSV"),
        media_types.XML: ("xml", "XML"),
    }
)
_BY_SLUG = {slug: media_type for media_type, (slug, _) in NAMES.items()}


def slug(media_type: str) -> str:
    """As it stands in an address: short for the usual ones, itself for all others."""
    return NAMES[media_type][0] if media_type in NAMES else media_type


def media_type(slug: str) -> str:
    return _BY_SLUG.get(slug, slug)


def called(media_type: str) -> str:
    """As people say it."""
    return NAMES[media_type][1] if media_type in NAMES else media_type
