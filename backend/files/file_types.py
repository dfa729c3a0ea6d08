"""Which files are taken, and up to which size."""

from dataclasses import dataclass

from connectors.errors import InvalidInputError
from connectors.extraction.registry import UNKNOWN, detect_media_type, is_supported
from connectors.text_cleaning import to_one_line

LARGEST_FILE = 20_000_000
"""Bytes."""
LARGEST_PICTURE = 5_000_000
"""Bytes of a picture, which are kept to be shown to the language model."""
MOST_CHARACTERS = 2_000_000
"""Of the text of a file."""
MOST_FILES = 1_000
"""Of one person."""
MOST_OF_QUESTION = 50
MOST_OF_HOLDER = 100
"""Of one project, or of one assistant."""
_LONGEST_NAME = 200
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_SNIFFED = 8192
_WEBP = b"WEBP"
_READABLE = "Give a text, Markdown, HTML, CSV, PDF, Word, PowerPoint, Excel or e-mail file, or a picture (PNG, JPEG, GIF, WebP)."


@dataclass(frozen=True, slots=True)
class UploadedFile:
    name: str
    data: bytes


def check_file(uploaded: UploadedFile) -> tuple[str, str]:
    """Return the name as it is shown, and the media type.

    Raises:
        InvalidInputError: the file is not taken; the message says why.
    """
    name = to_one_line(uploaded.name.replace("\\", "/").rpartition("/")[2])[-_LONGEST_NAME:]
    if not name:
        raise InvalidInputError("The file has no name. Give it one.")
    size = len(uploaded.data)
    if not size:
        raise InvalidInputError(f"{name} is empty.")
    if size > LARGEST_FILE:
        raise InvalidInputError(
            f"{name} has {size:,} bytes; a file may have {LARGEST_FILE:,}. Split it, or leave out what the question does not need."
        )
    media_type = _detect(name, uploaded.data[:_SNIFFED])
    if is_picture(media_type):
        if size > LARGEST_PICTURE:
            raise InvalidInputError(
                f"{name} has {size:,} bytes; a picture may have {LARGEST_PICTURE:,}. Make it smaller."
            )
    elif not is_supported(media_type):
        raise InvalidInputError(f"{name} is of a kind that cannot be read. {_READABLE}")
    return name, media_type


def is_picture(media_type: str) -> bool:
    return media_type in _PICTURES


def _detect(name: str, head: bytes) -> str:
    if head[:4] == b"RIFF" and head[8:12] == _WEBP:
        return "image/webp"
    found = detect_media_type(name, head)
    # The bytes decide what a picture is: its name may say anything.
    looks_so = head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8"))
    return UNKNOWN if is_picture(found) and not looks_so else found
