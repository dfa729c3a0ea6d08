"""Paths within a source, as ids and as text for people, and the glob patterns that select them.

Names are `str` as Python reads them from a file system: bytes that are not Unicode are kept as
surrogates (`os.fsencode` restores them). In a pattern `*`, `?` and `[...]` match within a name, `**` matches
any folders.
"""

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from itertools import takewhile
from typing import TypeAlias
from urllib.parse import quote_from_bytes, unquote_to_bytes

from connectors.text_cleaning import to_one_line

PathParts: TypeAlias = tuple[str, ...]
"""The names on the path from the root to a file or folder."""

_ESCAPED = re.compile("[\ud800-\udfff]")
_SUFFIX = re.compile(r"\.(?=\d*[A-Za-z])\w{1,8}$")

_ANY_FOLDERS = "**"
_SPECIAL = re.compile(r"[*?\[]")
_UNCLOSED = re.compile(r"\[(?!!?\]?[^\]]*\])")


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


@dataclass(frozen=True, slots=True)
class GlobPattern:
    """A pattern that is matched against a whole path from the root, case-sensitively.

    `*.md` matches files in the root, `**/*.md` files anywhere, `hr/**` everything below `hr`. A
    pattern that ends in a plain name (`hr`, `**/drafts`) also matches everything below a folder of
    that name. Names are compared in composed form (NFC), so that names from macOS match.
    """

    pattern: str
    names: tuple[re.Pattern[str] | None, ...]
    """One for each part of the pattern; None matches any number of folders."""

    @classmethod
    def parse(cls, pattern: str) -> "GlobPattern":
        """Parse a pattern. Raises ValueError: it is invalid; the message says why."""
        return cls(pattern, tuple(map(_compile_name, _split(pattern))))

    def matches(self, path: Sequence[str]) -> bool:
        """Return whether the pattern matches a file, given by the parts of its path."""
        return _match(self.names, [unicodedata.normalize("NFC", name) for name in path])

    @property
    def fixed_folders(self) -> tuple[str, ...]:
        """The names with which every path begins that the pattern matches."""
        fixed = takewhile(lambda name: not _SPECIAL.search(name), _split(self.pattern))
        return tuple(fixed)

    def covers(self, folder: Sequence[str]) -> bool:
        """Return whether the pattern matches a folder with everything below it."""
        return self.names[-1] is None and self.matches(folder)


@dataclass(frozen=True, slots=True)
class PathFilter:
    """Selects paths that match an include pattern and no exclude pattern."""

    include: tuple[GlobPattern, ...]
    """If empty, all paths are included."""
    exclude: tuple[GlobPattern, ...]

    @classmethod
    def parse(cls, include: Iterable[str], exclude: Iterable[str]) -> "PathFilter":
        """Parse the patterns of a filter. Raises ValueError: a pattern is invalid."""
        return cls(tuple(map(GlobPattern.parse, include)), tuple(map(GlobPattern.parse, exclude)))

    def includes(self, path: Sequence[str]) -> bool:
        if self.include and not matches_any(self.include, path):
            return False
        return not matches_any(self.exclude, path)


def matches_any(globs: Iterable[GlobPattern], path: Sequence[str]) -> bool:
    return any(glob.matches(path) for glob in globs)


def covers_any(globs: Iterable[GlobPattern], folder: Sequence[str]) -> bool:
    return any(glob.covers(folder) for glob in globs)


def _split(pattern: str) -> list[str]:
    parts = unicodedata.normalize("NFC", pattern).removeprefix("/").split("/")
    if parts[-1] == "":
        parts[-1] = _ANY_FOLDERS
    elif not _SPECIAL.search(parts[-1]):
        parts.append(_ANY_FOLDERS)
    for part in parts:
        _check_part(part, pattern)
    return parts


def _check_part(part: str, pattern: str) -> None:
    if pattern.strip("/ ") == "":
        raise ValueError("an empty pattern; use ** for every file")
    if part in ("", ".", ".."):
        raise ValueError(f"{pattern!r}: a pattern starts at the root and has no '.' or '..'")
    if _ANY_FOLDERS in part and part != _ANY_FOLDERS:
        raise ValueError(f"{pattern!r}: ** must stand alone between slashes, as in **/*.md")
    if _UNCLOSED.search(part):
        raise ValueError(f"{pattern!r}: [ is not closed")
    if "\\" in part:
        raise ValueError(f"{pattern!r}: use / between folders, and [*] for a literal *")
    if re.search(r"\{[^}]*,[^}]*\}", part):
        raise ValueError(f"{pattern!r}: use one pattern for each alternative instead of {{a,b}}")


def _compile_name(part: str) -> re.Pattern[str] | None:
    return None if part == _ANY_FOLDERS else re.compile(translate(part))


def _match(pattern: Sequence[re.Pattern[str] | None], path: Sequence[str]) -> bool:
    """Match part by part. A mismatch returns to the last `**` only, so that time is bounded by the
    number of parts of the pattern times those of the path.

    A final `**` also matches no part at all: so a plain name matches the file itself.
    """
    at, here = 0, 0
    retry: tuple[int, int] | None = None
    while here < len(path):
        if at < len(pattern) and pattern[at] is None:
            retry = (at, here)
            at += 1
        elif at < len(pattern) and (name := pattern[at]) is not None and name.match(path[here]):
            at, here = at + 1, here + 1
        elif retry is not None:
            retry = (retry[0], retry[1] + 1)
            at, here = retry[0] + 1, retry[1]
        else:
            return False
    return all(name is None for name in pattern[at:])
