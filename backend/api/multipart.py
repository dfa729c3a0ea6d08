"""Read the one file of a form (RFC 7578), and a text beside it. Nothing else is needed of the format, and nothing is guessed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import Message
from email.utils import collapse_rfc2231_value
from urllib.parse import unquote

from backend.files.file_types import UploadedFile
from connectors.errors import InvalidInputError

OVERHEAD = 100_000
"""Bytes of a form beside its file, at most."""
_MOST_PARTS = 20
_LONGEST_BOUNDARY = 200
_BOUNDARY = re.compile(r"""multipart/form-data\s*;(?:.*;)?\s*boundary=("?)([^";,\s]+)\1""", re.I)
_ADVICE = "Send multipart/form-data with one file in the field file."


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    file_name: str | None
    data: bytes


def read_file(content_type: str, body: bytes) -> UploadedFile:
    """Return the file of a form. Raises InvalidInputError."""
    return _find_file(_read_parts(content_type, body))


def read_file_with(content_type: str, body: bytes, field: str) -> tuple[str, UploadedFile]:
    """Return what the form says in a field, and its file. Raises InvalidInputError."""
    parts = _read_parts(content_type, body)
    said = [each.data for each in parts if each.name == field and each.file_name is None]
    if len(said) != 1:
        raise _refuse(f"The form has {len(said)} fields {field}.")
    try:
        return said[0].decode(), _find_file(parts)
    except UnicodeDecodeError:
        raise _refuse(f"The field {field} is not UTF-8.") from None


def _find_file(parts: Sequence[_Part]) -> UploadedFile:
    files = [each for each in parts if each.file_name is not None]
    if len(files) != 1:
        raise _refuse(f"The form has {len(files)} files.")
    return UploadedFile(files[0].file_name or "", files[0].data)


def _read_parts(content_type: str, body: bytes) -> list[_Part]:
    found = _BOUNDARY.match(content_type)
    if found is None or len(found[2]) > _LONGEST_BOUNDARY:
        raise _refuse("The request is no form with a file.")
    delimiter = b"\r\n--" + found[2].encode("latin-1", "replace")
    _, *parts = (b"\r\n" + body).split(delimiter, _MOST_PARTS)
    if not parts or not parts[-1].startswith(b"--"):
        raise _refuse("The form has no end, or too many fields.")
    return [read for part in parts[:-1] if (read := _read_part(part)) is not None]


def _read_part(part: bytes) -> _Part | None:
    """Return a field; None for what is none."""
    head, separator, data = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    if not separator:
        return None
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            disposition = _read_disposition(value)
            return _Part(_read_name(disposition), _read_file_name(disposition), data)
    return None


def _read_disposition(text: str) -> Message:
    message = Message()
    message["content-disposition"] = text.strip().replace("\r", " ").replace("\n", " ")
    return message


def _read_name(message: Message) -> str:
    found = message.get_param("name", "", "content-disposition")
    return found if isinstance(found, str) else collapse_rfc2231_value(found or "")


def _read_file_name(message: Message) -> str | None:
    found = message.get_param("filename", None, "content-disposition")
    if found is None:
        return None
    # Browsers write a quotation mark and line ends in names as percent escapes, and nothing else.
    name = found if isinstance(found, str) else collapse_rfc2231_value(found)
    return re.sub("%(22|0D|0A)", lambda each: unquote(each[0]), name)


def _refuse(detail: str) -> InvalidInputError:
    return InvalidInputError(detail, _ADVICE)
