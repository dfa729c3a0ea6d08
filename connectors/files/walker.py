"""The files below a root: walked in a stable order, and read without ever leaving the root."""

import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from connectors.files.paths import PathParts

_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_READINGS = 3


@dataclass(frozen=True, slots=True)
class File:
    parts: PathParts
    size: int
    """Bytes."""
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class InaccessiblePath:
    """A file or folder that could not be looked at."""

    parts: PathParts
    error: OSError


@dataclass(frozen=True, slots=True)
class FileContent:
    data: bytes
    mtime_ns: int


class FileChangedError(OSError):
    """The file was being written each time it was read."""


class NotRegularFileError(OSError):
    """It is no longer a plain file."""


class FileTooLargeError(OSError):
    """The file has grown past the limit."""


def walk_files(
    root: Path, enter: Callable[[PathParts], bool], after: PathParts = ()
) -> Iterator[File | InaccessiblePath]:
    """Yield the files below `root` that come after `after`, in the order of their parts.

    Links are not followed, so there is no cycle, no way out, and no file twice. Only names are
    held in memory, those of the folders that lead to the present file. `enter` says for each
    file or folder whether to look at it.

    Raises:
        OSError: the root itself cannot be listed.
    """
    above = [_children(root, (), after)]
    while above:
        parts = next(above[-1], None)
        if parts is None:
            above.pop()
        elif enter(parts):
            match _look(root, parts, after):
                case File() | InaccessiblePath() as found:
                    if parts != after:
                        yield found
                case None:
                    pass
                case children:
                    above.append(children)


def _look(
    root: Path, parts: PathParts, after: PathParts
) -> File | InaccessiblePath | Iterator[PathParts] | None:
    try:
        found = os.lstat(root.joinpath(*parts))
        if stat.S_ISDIR(found.st_mode):
            return _children(root, parts, after)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return InaccessiblePath(parts, error)
    if stat.S_ISREG(found.st_mode):
        return File(parts, found.st_size, found.st_mtime_ns)
    return None


def find_file(root: Path, parts: PathParts) -> File | InaccessiblePath | None:
    """The file there; nothing where there is none."""
    match _look(root, parts, ()):
        case File() | InaccessiblePath() as found:
            return found
        case _:
            return None


def _children(root: Path, folder: PathParts, after: PathParts) -> Iterator[PathParts]:
    names = sorted(os.listdir(root.joinpath(*folder)))  # noqa: PTH208 (names, not paths: memory)
    depth = len(folder)
    if depth < len(after) and after[:depth] == folder:
        names = names[bisect_left(names, after[depth]) :]
    return ((*folder, name) for name in names)


def read_head(root: Path, parts: PathParts, size: int) -> bytes:
    """The first `size` bytes of a file.

    Raises:
        OSError: it cannot be read.
    """
    with _opened(root, parts) as descriptor:
        return _read(descriptor, size)


def read_file(root: Path, parts: PathParts, largest: int) -> FileContent:
    """The content of a file that nobody wrote to meanwhile.

    Raises:
        OSError: it cannot be read; FileChangedError, NotRegularFileError and FileTooLargeError say what the system does not.
    """
    for _ in range(_READINGS):
        with _opened(root, parts) as descriptor:
            before = os.fstat(descriptor)
            # So many bytes are set aside before they are read: not the limit for every small file.
            data = _read(descriptor, min(before.st_size, largest) + 1)
            after = os.fstat(descriptor)
        if len(data) > largest:
            raise FileTooLargeError(FileTooLargeError.__doc__)
        if before.st_mtime_ns == after.st_mtime_ns and len(data) == after.st_size:
            return FileContent(data, after.st_mtime_ns)
    raise FileChangedError(FileChangedError.__doc__)


def open_file(root: Path, parts: PathParts) -> BufferedReader:
    """The file, to be read and closed.

    Raises:
        OSError: it cannot be opened.
    """
    return open(_descriptor(root, parts), "rb")


@contextmanager
def _opened(root: Path, parts: PathParts) -> Iterator[int]:
    descriptor = _descriptor(root, parts)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _descriptor(root: Path, parts: PathParts) -> int:
    """Open name by name: a folder exchanged for a link between the walk and now leads nowhere."""
    above = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in parts[:-1]:
            folder = os.open(name, _OPEN_FOLDER, dir_fd=above)
            os.close(above)
            above = folder
        descriptor = os.open(parts[-1], _OPEN_FILE, dir_fd=above)
    finally:
        os.close(above)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularFileError(NotRegularFileError.__doc__)
    return descriptor


def _read(descriptor: int, size: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(size)
