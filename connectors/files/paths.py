"""Paths within a source, as ids and as text for people.

Names are `str` as Python reads them from a file system: bytes that are not Unicode are kept as
surrogates (`os.fsencode` restores them).
"""

import os
import re
import unicodedata
from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import quote_from_bytes, unquote_to_bytes

from connectors.text_cleaning import to_one_line

PathParts: TypeAlias = tuple[str, ...]
"""The names on the path from the root to a file or folder."""

_ESCAPED = re.compile("[\ud800-\udfff]")
_SUFFIX = re.compile(r"\.(?=\d*[A-Za-z])\w{1,8}$")


def encode_path(parts: PathParts) -> str:
    """Encode a path as an id. One that is not Unicode is percent-encoded after a slash, with which
    no other id starts."""
    path = "/".join(parts)
    return f"/{quote_from_bytes(os.fsencode(path))}" if _ESCAPED.search(path) else path


def decode_path(encoded: str) -> PathParts | None:
    """Decode an id from `encode_path`; None if it is not a path below the root."""
    path = os.fsdecode(unquote_to_bytes(encoded[1:])) if encoded.startswith("/") else encoded
    parts = tuple(path.split("/"))
    return None if {"", ".", ".."} & set(parts) or "\0" in path else parts


def make_title(name: str) -> str:
    """Make a title from a file name."""
    words = re.sub(r"[_-]+", " ", _SUFFIX.sub("", name))
    return format_path([words]) or format_path([name])


def format_path(parts: Sequence[str]) -> str:
    return unicodedata.normalize("NFC", "/".join(map(to_one_line, parts)))
