"""What media types are called by people, and in addresses."""

from collections.abc import Mapping
from types import MappingProxyType

from connectors.extraction import registry

NAMES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        registry.PDF: ("pdf", "PDF"),
        registry.DOCX: ("word", "Word"),
        registry.XLSX: ("excel", "Excel"),
        registry.PPTX: ("powerpoint", "PowerPoint"),
        registry.HTML: ("web", "Web page"),
        registry.MARKDOWN: ("markdown", "Markdown"),
        registry.TEXT: ("text", "Plain text"),
        registry.EML: ("mail", "Mail"),
        registry.CSV: ("csv", "CSV"),
        registry.TSV: ("tsv", "TSV"),
        registry.XML: ("xml", "XML"),
    }
)
_BY_SLUG = {slug: media_type for media_type, (slug, _) in NAMES.items()}


def slug(media_type: str) -> str:
    """Return the value in a URL: an abbreviation for the usual types, the type itself for all others."""
    return NAMES[media_type][0] if media_type in NAMES else media_type


def media_type(slug: str) -> str:
    return _BY_SLUG.get(slug, slug)


def display_name(media_type: str) -> str:
    """Return the display name of a media type."""
    return NAMES[media_type][1] if media_type in NAMES else media_type


def slugs() -> tuple[str, ...]:
    return tuple(_BY_SLUG)
