"""Turn the files of a folder into documents, and recognize those that have not changed."""

import hashlib
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path

from connectors.access import Access
from connectors.connector import Change, Unchanged, Unreadable
from connectors.document import Document
from connectors.extraction.registry import (
    HEAD_SIZE,
    detect_media_type,
    extract,
    is_supported,
    unsupported_format,
)
from connectors.extraction.result import ExtractionError
from connectors.files.paths import PathParts, encode_path, format_path, make_title
from connectors.files.walker import (
    File,
    FileContent,
    FileTooLargeError,
    InaccessiblePath,
    describe_os_error,
    read_file,
    read_head,
)
from connectors.text_cleaning import shorten_title

# Part of every version: increase it when files yield other sections than before, or more files can be read,
# so that all are read again.
_EXTRACTION_VERSION = 1
_NOT_READ = "0" * 64


@dataclass(frozen=True, slots=True)
class FileVersion:
    """The version of a file, by which changes are detected: size and time, which are cheap to compare, then content."""

    size: int
    mtime_ns: int
    sha256: str

    @classmethod
    def parse(cls, text: str | None) -> "FileVersion | None":
        match = re.fullmatch(rf"{_EXTRACTION_VERSION}:(\d+):(-?\d+):([0-9a-f]{{64}})", text or "")
        return cls(int(match[1]), int(match[2]), match[3]) if match else None

    @classmethod
    def from_stat(cls, file: File) -> "FileVersion":
        """Return the version of a file whose content was not read: another time makes it another version."""
        return cls(file.size, file.mtime_ns, _NOT_READ)

    @classmethod
    def from_content(cls, content: FileContent) -> "FileVersion":
        digest = hashlib.sha256(content.data).hexdigest()
        return cls(len(content.data), content.mtime_ns, digest)

    def matches_stat(self, file: File) -> bool:
        return (self.size, self.mtime_ns) == (file.size, file.mtime_ns)

    def matches_file(self, file: BufferedReader) -> bool:
        """Compare with an open file: by size and time, and by content if only the time differs."""
        found = os.fstat(file.fileno())
        if found.st_size != self.size:
            return False
        if found.st_mtime_ns == self.mtime_ns:
            return True
        is_same = hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        file.seek(0)
        return is_same

    def __str__(self) -> str:
        return f"{_EXTRACTION_VERSION}:{self.size}:{self.mtime_ns}:{self.sha256}"


@dataclass(frozen=True, slots=True)
class FileReader:
    """Reads the files below one root as changes of one source."""

    source: str
    root: Path
    largest_file: int

    def make_id(self, parts: PathParts) -> str:
        return f"{self.source}:{encode_path(parts)}"

    def read_change(
        self, entry: File | InaccessiblePath, access: Access, stored: FileVersion | None
    ) -> Change | None:
        """Return what changed since the stored version; None if nothing did, or the file is gone."""
        if isinstance(entry, InaccessiblePath):
            return self._unreadable(entry.parts, describe_os_error(entry.error))
        if stored is not None and stored.matches_stat(entry):
            return None
        try:
            return self._read(entry, access, stored)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return self._unreadable(entry.parts, describe_os_error(error))
        except ExtractionError as error:
            return self._unreadable(entry.parts, str(error), str(FileVersion.from_stat(entry)))

    def _read(self, file: File, access: Access, stored: FileVersion | None) -> Change:
        if file.size > self.largest_file:
            raise FileTooLargeError(f"{file.size:,} bytes; the limit is {self.largest_file:,}")
        media_type = detect_media_type(file.parts[-1], read_head(self.root, file.parts, HEAD_SIZE))
        if file.size and not is_supported(media_type):
            raise unsupported_format(media_type)
        content = read_file(self.root, file.parts, self.largest_file)
        version = FileVersion.from_content(content)
        if stored is not None and stored.sha256 == version.sha256:
            return Unchanged(self.make_id(file.parts), str(version))
        try:
            extracted = extract(content.data, media_type)
        except ExtractionError as error:
            return self._unreadable(file.parts, str(error), str(version))
        return Document(
            id=self.make_id(file.parts),
            source=self.source,
            title=shorten_title(extracted.title or make_title(file.parts[-1])),
            sections=extracted.sections,
            link=self._link(file.parts),
            media_type=media_type,
            access=access,
            version=str(version),
            metadata={"path": format_path(file.parts), **extracted.metadata},
            owners=extracted.authors,
            created_at=extracted.created_at,
            # The time inside a file survives a copy or a checkout; the time on disk does not.
            updated_at=extracted.updated_at
            or extracted.created_at
            or _parse_mtime(content.mtime_ns),
            parents=tuple(format_path([name]) for name in file.parts[:-1]),
        )

    def _unreadable(self, parts: PathParts, reason: str, version: str | None = None) -> Unreadable:
        return Unreadable(
            document_id=self.make_id(parts),
            item=format_path(parts),
            reason=reason,
            link=self._link(parts),
            version=version,
        )

    def _link(self, parts: PathParts) -> str:
        return self.root.joinpath(*parts).as_uri()


def _parse_mtime(mtime_ns: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return None
