"""Where a repository on this machine leads outside of its folder.

git follows files of the repository to other folders: a `.git` that is a file, a common folder of several work trees,
borrowed objects, and symbolic links anywhere. Whoever may write to a repository could thereby have others read
through it.
"""

import os
from collections.abc import Iterator
from pathlib import Path

_LONGEST = 1 << 20
_UNKNOWN = Path("/")
"""Stands for a place that cannot be determined."""


def find_repository_links(folder: Path) -> Iterator[Path]:
    """Yield each symbolic link in the repository, and each folder that its files name, with the links in that.

    Its work tree, which is not read, is left out.
    """
    seen: set[Path] = set()
    waiting = [*_name_candidates(folder)]
    while waiting:
        place = waiting.pop()
        if place in seen or not os.path.lexists(place):
            continue
        seen.add(place)
        yield place
        if place == _UNKNOWN:
            return
        yield from _find_symbolic_links(place)
        waiting += _read_targets(place)


def _name_candidates(folder: Path) -> Iterator[Path]:
    """Yield where git looks for the repository of a path."""
    bare = folder.with_name(f"{folder.name}.git") if folder.name else folder
    for each in (folder, bare):
        yield each / ".git"
        if os.path.lexists(each / "HEAD"):
            yield each


def _find_symbolic_links(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if (path := Path(place, name)).is_symlink():
                yield path


def _read_targets(place: Path) -> Iterator[Path]:
    """Yield the folders that a `.git` file, a repository or a folder of objects names, as git reads them."""
    if place.is_file():
        yield place.parent / os.fsdecode(_read(place).removeprefix(b"gitdir: ").rstrip(b"\r\n"))
        return
    if common := _read(place / "commondir").rstrip():
        yield place / os.fsdecode(common)
    for objects in (place, place / "objects"):
        for line in filter(None, _read(objects / "info/alternates").split(b"\n")):
            # In quotes are escapes, which nobody needs for the name of a folder.
            yield _UNKNOWN if line.startswith(b'"') else objects / os.fsdecode(line)


def _read(file: Path) -> bytes:
    """Return what a file contains; nothing where there is no such file."""
    try:
        if not file.is_file():
            return b""
        with file.open("rb") as opened:
            content = opened.read(_LONGEST + 1)
    except OSError:
        return b""
    return content if len(content) <= _LONGEST else os.fsencode(_UNKNOWN)
