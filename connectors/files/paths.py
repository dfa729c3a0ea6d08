"""Paths within a source: as ids, and as people read them.

Names are `str` as Python takes them from a file system: bytes that are no Unicode are kept as
surrogates (`os.fsencode` gives them back).
"""

import os
import re
import unicodedata
from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import quote_from_bytes, unquote_to_bytes

from connectors.text_cleaning import to_one_line

PathParts: TypeAlias = tuple[str, ...]
"""The names that lead from the root to a file or folder."""

_ESCAPED = re.compile("[\ud800-\udfff]")
_SUFFIX = re.compile(r"\.(?=\d*[A-Za-z])\w{1,8}$")


def encode_path(parts: PathParts) -> str:
    """The path from the root. One that is no Unicode is percent-encoded after a slash, with which
    no other begins."""
    path = "/".join(parts)
    return f"/{quote_from_bytes(os.fsencode(path))}" if _ESCAPED.search(path) else path


def decode_path(own: str) -> PathParts | None:
    """The way back from `encode_path`; nothing for what is no path within the root."""
    path = os.fsdecode(unquote_to_bytes(own[1:])) if own.startswith("/") else own
    parts = tuple(path.split("/"))
    return None if {"", ".", ".."} & set(parts) or "\0" in path else parts


def make_title(name: str) -> str:
    """A title from the name of a file."""
    words = re.sub(r"[_-]+", " ", _SUFFIX.sub("", name))
    return format_path([words]) or format_path([name])


def format_path(parts: Sequence[str]) -> str:
    return unicodedata.normalize("NFC", "/".join(map(to_one_line, parts)))
