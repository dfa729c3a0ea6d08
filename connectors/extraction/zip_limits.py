"""Limits of office files, which are zip archives of XML, checked before they are unpacked."""

import zipfile
from io import BytesIO

from connectors.extraction.parser_guard import convert_parser_errors
from connectors.extraction.result import ExtractionError

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MOST_MEMBERS = 20_000
_LARGEST_UNPACKED = 1_000_000_000
_PROLOGUE = 1024


def check_zip_limits(data: bytes, what: str, largest_part: int) -> None:
    """Refuse a file that is not an archive, would unpack to too much, or may define XML entities.

    `largest_part` limits each XML file, in bytes. The sizes are those that the archive declares:
    unpacking stops there, so they hold.

    Raises:
        ExtractionError: the message names the limit.
    """
    if data.startswith(_OLE):
        raise ExtractionError(
            f"it is a {what} protected by a password, or one of the old binary format"
        )
    with convert_parser_errors(what), zipfile.ZipFile(BytesIO(data)) as archive:
        members = archive.infolist()
        _check_sizes(members, largest_part)
        for member in filter(_is_xml, members):
            with archive.open(member) as file:
                if b"<!DOCTYPE" in file.read(_PROLOGUE):
                    raise ExtractionError(f"{member.filename} in it declares a document type")


def _check_sizes(members: list[zipfile.ZipInfo], largest_part: int) -> None:
    if len(members) > _MOST_MEMBERS:
        raise ExtractionError(f"it is an archive of more than {_MOST_MEMBERS:,} files")
    if sum(member.file_size for member in members) > _LARGEST_UNPACKED:
        raise ExtractionError(f"it unpacks to more than {_LARGEST_UNPACKED:,} bytes")
    if any(member.file_size > largest_part for member in members if _is_xml(member)):
        raise ExtractionError(f"a part of it unpacks to more than {largest_part:,} bytes")


def _is_xml(member: zipfile.ZipInfo) -> bool:
    return member.filename.lower().endswith((".xml", ".rels", ".vml"))
