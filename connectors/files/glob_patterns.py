"""Patterns for paths below a root: `*` and `?` inside a name, `[...]`, and `**` for any folders."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate

_ANY_FOLDERS = "**"
_SPECIAL = re.compile(r"[*?\[]")
_UNCLOSED = re.compile(r"\[(?!!?\]?[^\]]*\])")


@dataclass(frozen=True, slots=True)
class GlobPattern:
    """A pattern that is matched from the root, case-sensitively, against a whole path.

    `*.md` is a file of the root, `**/*.md` one anywhere, `hr/**` everything below `hr`. A pattern
    that ends in a plain name (`hr`, `**/drafts`) also covers what lies below a folder of that
    name. Both sides are compared in the composed form (NFC), so that names from a Mac match.
    """

    pattern: str
    names: tuple[re.Pattern[str] | None, ...]
    """One for each part of the pattern; None stands for any number of folders."""

    @classmethod
    def parse(cls, pattern: str) -> "GlobPattern":
        """
        Raises:
            ValueError: not a pattern that can be matched; the message says why.
        """
        parts = _parts(pattern)
        return cls(pattern, tuple(map(_name, parts)))

    def matches(self, path: Sequence[str]) -> bool:
        """Whether the file whose path from the root has these parts is meant."""
        return _match(self.names, [unicodedata.normalize("NFC", name) for name in path])

    def covers(self, folder: Sequence[str]) -> bool:
        """Whether this name, and if it is a folder every file below it, is meant."""
        return self.names[-1] is None and self.matches(folder)


@dataclass(frozen=True, slots=True)
class PathFilter:
    """What some patterns take in, without what others leave out."""

    include: tuple[GlobPattern, ...]
    """None: all."""
    exclude: tuple[GlobPattern, ...]

    @classmethod
    def parse(cls, include: Iterable[str], exclude: Iterable[str]) -> "PathFilter":
        """Raises ValueError: one of them is no glob."""
        return cls(tuple(map(GlobPattern.parse, include)), tuple(map(GlobPattern.parse, exclude)))

    def takes(self, path: Sequence[str]) -> bool:
        if self.include and not matches_any(self.include, path):
            return False
        return not matches_any(self.exclude, path)


def matches_any(globs: Iterable[GlobPattern], path: Sequence[str]) -> bool:
    return any(glob.matches(path) for glob in globs)


def covers_any(globs: Iterable[GlobPattern], folder: Sequence[str]) -> bool:
    return any(glob.covers(folder) for glob in globs)


def _parts(pattern: str) -> list[str]:
    parts = unicodedata.normalize("NFC", pattern).removeprefix("/").split("/")
    if parts[-1] == "":
        parts[-1] = _ANY_FOLDERS
    elif not _SPECIAL.search(parts[-1]):
        parts.append(_ANY_FOLDERS)
    for part in parts:
        _check(part, pattern)
    return parts


def _check(part: str, pattern: str) -> None:
    if pattern.strip("/ ") == "":
        raise ValueError("an empty pattern; write ** for every file")
    if part in ("", ".", ".."):
        raise ValueError(f"{pattern!r}: a pattern is written from the root, without '.' or '..'")
    if _ANY_FOLDERS in part and part != _ANY_FOLDERS:
        raise ValueError(f"{pattern!r}: ** stands alone between slashes, as in **/*.md")
    if _UNCLOSED.search(part):
        raise ValueError(f"{pattern!r}: a [ is not closed")
    if "\\" in part:
        raise ValueError(f"{pattern!r}: write / between folders, and [*] for the character itself")
    if re.search(r"\{[^}]*,[^}]*\}", part):
        raise ValueError(f"{pattern!r}: write one pattern for each choice instead of {{a,b}}")


def _name(part: str) -> re.Pattern[str] | None:
    return None if part == _ANY_FOLDERS else re.compile(translate(part))


def _match(pattern: Sequence[re.Pattern[str] | None], path: Sequence[str]) -> bool:
    """Match part by part; a mismatch goes back to the last `**` only, so time is bounded by
    the parts of the pattern times the parts of the path.

    A final `**` also matches nothing at all: that is how a plain name matches the file itself.
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
