"""Read the one file of a form (RFC 7578). Nothing else is needed of the format, and nothing is guessed."""

import re
from email.message import Message
from email.utils import collapse_rfc2231_value
from urllib.parse import unquote

from backend.api.problem_details import Problem, problem
from backend.files.file_types import UploadedFile

OVERHEAD = 100_000
"""Bytes of a form beside its file, at most."""
_MOST_PARTS = 20
_LONGEST_BOUNDARY = 200
_BOUNDARY = re.compile(r"""multipart/form-data\s*;(?:.*;)?\s*boundary=("?)([^";,\s]+)\1""", re.I)
_ADVICE = "Send multipart/form-data with one file in the field file."


def read_file(content_type: str, body: bytes) -> UploadedFile:
    """Raises Problem: 422."""
    found = _BOUNDARY.match(content_type)
    if found is None or len(found[2]) > _LONGEST_BOUNDARY:
        raise _refuse("The request is no form with a file.")
    delimiter = b"\r\n--" + found[2].encode("latin-1", "replace")
    _, *parts = (b"\r\n" + body).split(delimiter, _MOST_PARTS)
    if not parts or not parts[-1].startswith(b"--"):
        raise _refuse("The form has no end, or too many fields.")
    files = [file for part in parts[:-1] if (file := _read_part(part)) is not None]
    if len(files) != 1:
        raise _refuse(f"The form has {len(files)} files.")
    return files[0]


def _read_part(part: bytes) -> UploadedFile | None:
    """Return a file; None for another field."""
    head, separator, data = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    if not separator:
        return None
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            file_name = _read_file_name(value)
            return None if file_name is None else UploadedFile(file_name, data)
    return None


def _read_file_name(disposition: str) -> str | None:
    message = Message()
    message["content-disposition"] = disposition.strip().replace("\r", " ").replace("\n", " ")
    found = message.get_param("filename", None, "content-disposition")
    if found is None:
        return None
    # Browsers write a quotation mark and line ends in names as percent escapes, and nothing else.
    name = found if isinstance(found, str) else collapse_rfc2231_value(found)
    return re.sub("%(22|0D|0A)", lambda each: unquote(each[0]), name)


def _refuse(detail: str) -> Problem:
    return Problem(problem(422, detail, _ADVICE))
