"""Bytes and a media type to sections: the one door to the readers of all formats."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from connectors.extraction import media_types
from connectors.extraction.extracted import CannotRead, Extracted
from connectors.extraction.hypertext import read_html
from connectors.extraction.markdown import read_markdown
from connectors.extraction.plain_text import read_text

Reader: TypeAlias = Callable[[bytes], Extracted]

_READERS: Mapping[str, Reader] = MappingProxyType(
    {
        **dict.fromkeys((media_types.TEXT, "application/json", "application/yaml"), read_text),
        media_types.XML: read_text,
        media_types.MARKDOWN: read_markdown,
        media_types.HTML: read_html,
    }
)


def can_read(media_type: str) -> bool:
    return media_type in _READERS


def not_read_yet(media_type: str) -> CannotRead:
    return CannotRead(f"{media_type} is not a format that Quarry reads yet")


def extract(data: bytes, media_type: str) -> Extracted:
    """What a file says, as sections in its own order.

    Raises:
        CannotRead: the file is empty, broken, protected, of another format than `media_type`,
            beyond a limit, or of a format that is not read yet; the message says which.
    """
    if not data:
        raise CannotRead("the file is empty")
    reader = _READERS.get(media_type)
    if reader is None:
        raise not_read_yet(media_type)
    return reader(data)
