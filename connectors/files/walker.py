"""Walk the files below a root in a stable order, and read them without leaving the root."""

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
_READ_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class File:
    parts: PathParts
    size: int
    """Bytes."""
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class InaccessiblePath:
    """A file or folder that could not be accessed."""

    parts: PathParts
    error: OSError


@dataclass(frozen=True, slots=True)
class FileContent:
    data: bytes
    mtime_ns: int


class FileChangedError(OSError):
    """The file was being written each time it was read."""


class NotRegularFileError(OSError):
    """It is no longer a regular file."""


class FileTooLargeError(OSError):
    """The file has grown past the limit."""


def walk_files(
    root: Path, enter: Callable[[PathParts], bool], after: PathParts = ()
) -> Iterator[File | InaccessiblePath]:
    """Yield the files below `root` that sort after `after`, in the order of their path parts.

    Links are not followed: so there are no cycles, nothing outside the root, and no file twice.
    Only the names in the folders above the current file are held in memory. `enter` decides for
    each file or folder whether to visit it.

    Raises:
        OSError: the root itself cannot be listed.
    """
    above = [_list_children(root, (), after)]
    while above:
        parts = next(above[-1], None)
        if parts is None:
            above.pop()
        elif enter(parts):
            match _visit(root, parts, after):
                case File() | InaccessiblePath() as found:
                    if parts != after:
                        yield found
                case None:
                    pass
                case children:
                    above.append(children)


def _visit(
    root: Path, parts: PathParts, after: PathParts
) -> File | InaccessiblePath | Iterator[PathParts] | None:
    try:
        found = os.lstat(root.joinpath(*parts))
        if stat.S_ISDIR(found.st_mode):
            return _list_children(root, parts, after)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return InaccessiblePath(parts, error)
    if stat.S_ISREG(found.st_mode):
        return File(parts, found.st_size, found.st_mtime_ns)
    return None


def find_file(root: Path, parts: PathParts) -> File | InaccessiblePath | None:
    """Return the file at a path, or None if there is none."""
    match _visit(root, parts, ()):
        case File() | InaccessiblePath() as found:
            return found
        case _:
            return None


def _list_children(root: Path, folder: PathParts, after: PathParts) -> Iterator[PathParts]:
    names = sorted(os.listdir(root.joinpath(*folder)))  # noqa: PTH208 (names, not paths: memory)
    depth = len(folder)
    if depth < len(after) and after[:depth] == folder:
        names = names[bisect_left(names, after[depth]) :]
    return ((*folder, name) for name in names)


def read_head(root: Path, parts: PathParts, size: int) -> bytes:
    """Read the first `size` bytes of a file.

    Raises:
        OSError: the file cannot be read.
    """
    with _hold_descriptor(root, parts) as descriptor:
        return _read(descriptor, size)


def read_file(root: Path, parts: PathParts, largest: int) -> FileContent:
    """Read a file consistently: again if it was written to meanwhile.

    Raises:
        OSError: the file cannot be read; FileChangedError, NotRegularFileError and FileTooLargeError
            where the system gives no reason.
    """
    for _ in range(_READ_ATTEMPTS):
        with _hold_descriptor(root, parts) as descriptor:
            before = os.fstat(descriptor)
            # `read` allocates this many bytes at once: with the limit, every small file would cost so much.
            data = _read(descriptor, min(before.st_size, largest) + 1)
            after = os.fstat(descriptor)
        if len(data) > largest:
            raise FileTooLargeError(FileTooLargeError.__doc__)
        if before.st_mtime_ns == after.st_mtime_ns and len(data) == after.st_size:
            return FileContent(data, after.st_mtime_ns)
    raise FileChangedError(FileChangedError.__doc__)


def open_file(root: Path, parts: PathParts) -> BufferedReader:
    """Open a file, for the caller to close.

    Raises:
        OSError: the file cannot be opened.
    """
    return open(_open_descriptor(root, parts), "rb")


@contextmanager
def _hold_descriptor(root: Path, parts: PathParts) -> Iterator[int]:
    descriptor = _open_descriptor(root, parts)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_descriptor(root: Path, parts: PathParts) -> int:
    """Open name by name: if a folder was replaced by a link since the walk, this fails."""
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


def describe_os_error(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "permission denied: let Quarry's user read it"
    return error.strerror or str(error)
