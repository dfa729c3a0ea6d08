"""A folder that stays in sync, with an optional `access.yaml` that says who may read what."""

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from connectors.access import Access
from connectors.batched import batched
from connectors.checkpoints import load_checkpoint
from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    Deletion,
    DocumentListing,
    KnownVersions,
    Unchanged,
    Unreadable,
    make_checks,
)
from connectors.document import Document
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.extraction.media_types import HEAD_SIZE, detect_media_type
from connectors.extraction.registry import extract, is_supported, unsupported_format
from connectors.extraction.result import ExtractionError
from connectors.files.access_rules import OPEN_TO_ALL, AccessRules, parse_access_rules
from connectors.files.glob_patterns import PathFilter, covers_any
from connectors.files.paths import PathParts, decode_path, encode_path, format_path, make_title
from connectors.files.walker import (
    File,
    FileContent,
    FileTooLargeError,
    InaccessiblePath,
    find_file,
    open_file,
    read_file,
    read_head,
    walk_files,
)
from connectors.setting_types import GlobPatterns
from connectors.source_kind import NoCredential, SourceKind
from connectors.text_cleaning import shorten_title

ACCESS_FILE = "access.yaml"

# Raise it when files read again would say something else than before.
_READING = 1
_FILES_A_CHECKPOINT = 200
_LATER = timedelta(minutes=5)
_LITTER = {"Thumbs.db", "desktop.ini", "lost+found"}


class FolderSettings(BaseModel):
    """Which files of which folder. Globs are matched from the folder; see `connectors.files.glob_patterns`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path = Field(
        title="Folder on this machine",
        description="Read with all folders in it. An access.yaml there says who may read what.",
    )
    include: GlobPatterns = Field(
        default=(), description="Globs of the files to read, such as **/*.md. Empty: all."
    )
    exclude: GlobPatterns = Field(default=(), description="Globs of the files to leave out.")
    largest_file: int = Field(
        default=100_000_000, gt=0, description="Bytes. A larger file is reported as unreadable."
    )

    @field_validator("path")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        try:
            return path.expanduser().absolute()
        except RuntimeError as error:
            raise ValueError(f"{path}: there is no such home") from error


@dataclass(frozen=True, slots=True)
class _Version:
    """What is compared to learn that a file has changed: cheap things first, content last."""

    size: int
    mtime_ns: int
    sha256: str

    @classmethod
    def parse(cls, text: str | None) -> "_Version | None":
        match = re.fullmatch(rf"{_READING}:(\d+):(-?\d+):([0-9a-f]{{64}})", text or "")
        return cls(int(match[1]), int(match[2]), match[3]) if match else None

    @classmethod
    def of(cls, content: FileContent) -> "_Version":
        digest = hashlib.sha256(content.data).hexdigest()
        return cls(len(content.data), content.mtime_ns, digest)

    def fits(self, file: File) -> bool:
        return (self.size, self.mtime_ns) == (file.size, file.mtime_ns)

    def __str__(self) -> str:
        return f"{_READING}:{self.size}:{self.mtime_ns}:{self.sha256}"


class FolderConnector:
    """The files of a folder, recursively, without hidden ones and without following links."""

    def __init__(self, source: str, settings: FolderSettings) -> None:
        self._source = source
        self._settings = settings
        self._chosen = PathFilter.parse(settings.include, settings.exclude)

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what changed, with a checkpoint every 200 files.

        A file of the size and time that Quarry holds is taken for unchanged; of another time but
        the same content it is `Unchanged`. What was deleted is found from `listing`.

        Raises:
            TemporarilyUnavailableError: the disk does not answer, or went away meanwhile.
            ActionRequiredError: the folder is not there, or its access file is malformed.
        """
        root = self._root()
        identity = _identity(root)
        rules = _access_rules(root)
        for batch in batched(self._walk(root, _position(since)), _FILES_A_CHECKPOINT):
            held = known([self._id(item.parts) for item in batch])
            for item in batch:
                version = _Version.parse(held.get(self._id(item.parts)))
                change = self._change(root, rules, item, version)
                if change is not None:
                    yield change
            yield Checkpoint(json.dumps({"after": batch[-1].parts}))
        self._still(root, identity)
        yield Checkpoint(json.dumps({"after": None}))

    def listing(self) -> Iterator[DocumentListing]:
        """Yield every file with those who may read it now; nothing is opened but folders.

        Raises:
            TemporarilyUnavailableError: the disk does not answer, or went away meanwhile.
            ActionRequiredError: the folder, or one in it, cannot be listed, or the access file is malformed.
        """
        root = self._root()
        identity = _identity(root)
        rules = _access_rules(root)
        for item in self._walk(root, ()):
            if isinstance(item, InaccessiblePath):
                _check_closed(item)
            yield DocumentListing(self._id(item.parts), rules.access(item.parts))
        self._still(root, identity)

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.refetch`."""
        root = self._root()
        rules = _access_rules(root)
        for document_id in document_ids:
            yield self._again(root, rules, document_id)

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        fault = self._fault()
        yield from make_checks(fault, fault)

    def original(self, document_id: str, version: str) -> BufferedReader | None:
        """See `ProvidesOriginal.original`."""
        held = _Version.parse(version)
        parts = decode_path(document_id.removeprefix(f"{self._source}:"))
        if held is None or parts is None:
            return None
        try:
            file = open_file(self._root(), parts)
        except (OSError, ValueError, ActionRequiredError):
            return None
        if _is_still(file, held):
            return file
        file.close()
        return None

    def _root(self) -> Path:
        path = self._settings.path
        try:
            root = path.resolve(strict=True)
            with os.scandir(root):
                return root
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "the link leads in a circle"
            raise ActionRequiredError(
                f"the folder {path} cannot be opened ({reason}): connect its disk, let Quarry's"
                " user read it, or correct the path"
            ) from error

    def _still(self, root: Path, was: tuple[int, int]) -> None:
        """A disk that goes away during a walk must not look like a folder with fewer files."""
        try:
            gone = _identity(self._settings.path) != was
        except OSError:
            gone = True
        if gone:
            raise TemporarilyUnavailableError(
                f"the folder {root} went away while it was read", _LATER
            )

    def _walk(self, root: Path, after: PathParts) -> Iterator[File | InaccessiblePath]:
        try:
            yield from filter(self._includes, walk_files(root, self._enters, after))
        except OSError as error:
            raise TemporarilyUnavailableError(
                f"the folder {root} went away: {_said(error)}", _LATER
            ) from error

    def _enters(self, parts: PathParts) -> bool:
        name = parts[-1]
        hidden = name.startswith((".", "~$")) or name in _LITTER or parts == (ACCESS_FILE,)
        return not hidden and not covers_any(self._chosen.exclude, parts)

    def _includes(self, item: File | InaccessiblePath) -> bool:
        return isinstance(item, InaccessiblePath) or self._chosen.takes(item.parts)

    def _id(self, parts: PathParts) -> str:
        return f"{self._source}:{encode_path(parts)}"

    def _change(
        self, root: Path, rules: AccessRules, item: File | InaccessiblePath, held: _Version | None
    ) -> Change | None:
        if isinstance(item, InaccessiblePath):
            return self._unreadable(root, item.parts, _said(item.error))
        if held is not None and held.fits(item):
            return None
        try:
            return self._read(root, rules.access(item.parts), item, held)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return self._unreadable(root, item.parts, _said(error))
        except ExtractionError as error:
            return self._unreadable(root, item.parts, str(error))

    def _read(self, root: Path, access: Access, file: File, held: _Version | None) -> Change:
        largest = self._settings.largest_file
        if file.size > largest:
            raise FileTooLargeError(f"{file.size:,} bytes; the limit is {largest:,}")
        media_type = detect_media_type(file.parts[-1], read_head(root, file.parts, HEAD_SIZE))
        if file.size and not is_supported(media_type):
            raise unsupported_format(media_type)
        content = read_file(root, file.parts, largest)
        version = _Version.of(content)
        if held is not None and held.sha256 == version.sha256:
            return Unchanged(self._id(file.parts), str(version))
        extracted = extract(content.data, media_type)
        return Document(
            id=self._id(file.parts),
            source=self._source,
            title=shorten_title(extracted.title or make_title(file.parts[-1])),
            sections=extracted.sections,
            link=root.joinpath(*file.parts).as_uri(),
            media_type=media_type,
            access=access,
            version=str(version),
            metadata={"path": format_path(file.parts), **extracted.metadata},
            owners=extracted.authors,
            created_at=extracted.created_at,
            # What a file says of itself holds after a copy or a checkout; its time on disk does not.
            updated_at=extracted.updated_at or extracted.created_at or _moment(content.mtime_ns),
            parents=tuple(format_path([name]) for name in file.parts[:-1]),
        )

    def _again(self, root: Path, rules: AccessRules, document_id: str) -> Change:
        parts = decode_path(document_id.removeprefix(f"{self._source}:"))
        file = None if parts is None or not self._reaches(parts) else find_file(root, parts)
        if file is None or not self._includes(file):
            return Deletion(document_id)
        return self._change(root, rules, file, None) or Deletion(document_id)

    def _reaches(self, parts: PathParts) -> bool:
        return all(self._enters(parts[:end]) for end in range(1, len(parts) + 1))

    def _fault(self) -> str | None:
        try:
            root = self._root()
            _access_rules(root)
            any(True for _ in islice(self._walk(root, ()), 1))
        except (ActionRequiredError, TemporarilyUnavailableError) as error:
            return str(error)
        return None

    def _unreadable(self, root: Path, parts: PathParts, reason: str) -> Unreadable:
        return Unreadable(
            document_id=self._id(parts),
            item=format_path(parts),
            reason=reason,
            link=root.joinpath(*parts).as_uri(),
        )


def _identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


def _is_still(file: BufferedReader, held: _Version) -> bool:
    """Whether the file holds what was read; by size and time, and by content where the time is another."""
    found = os.fstat(file.fileno())
    if found.st_size != held.size:
        return False
    if found.st_mtime_ns == held.mtime_ns:
        return True
    same = hashlib.file_digest(file, "sha256").hexdigest() == held.sha256
    file.seek(0)
    return same


def _position(since: Checkpoint | None) -> PathParts:
    """Where the walk goes on. A checkpoint that says nothing sensible begins from the start: every
    file is then compared once more, and none is missed."""
    told = load_checkpoint(since)
    after = told.get("after") if isinstance(told, dict) else None
    if not isinstance(after, list) or not all(isinstance(name, str) for name in after):
        return ()
    return tuple(after)


def _access_rules(root: Path) -> AccessRules:
    path = root / ACCESS_FILE
    if not os.path.lexists(path):
        _check_misnamed(root)
        return OPEN_TO_ALL
    try:
        # Not a pipe or a device: reading one would wait for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ActionRequiredError(f"{path} must be a file")
        return parse_access_rules(path.read_bytes(), str(path))
    except OSError as error:
        raise ActionRequiredError(
            f"{path} cannot be read ({error.strerror}): without it Quarry does not know who may"
            " read the folder"
        ) from error


def _check_misnamed(root: Path) -> None:
    """Rules under a name that is almost right must not leave the folder open to all."""
    for name in ("access.yml", "Access.yaml", "Access.yml", "ACCESS.YAML"):
        if os.path.lexists(root / name):
            raise ActionRequiredError(f"{root / name}: rename the file to {ACCESS_FILE}")


def _check_closed(item: InaccessiblePath) -> None:
    """What cannot be listed must not look deleted. A path that is too long was never read."""
    match item.error:
        case PermissionError():
            raise ActionRequiredError(
                f"{format_path(item.parts)} cannot be listed ({_said(item.error)}); or exclude it"
            )
        case OSError(errno=errno.ENAMETOOLONG):
            return
        case _:
            raise TemporarilyUnavailableError(
                f"{format_path(item.parts)}: {_said(item.error)}", _LATER
            )


def _said(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "permission denied: let Quarry's user read it"
    return error.strerror or str(error)


def _moment(mtime_ns: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _connector(source: str, settings: FolderSettings, credential: NoCredential) -> FolderConnector:
    del credential
    return FolderConnector(source, settings)


def _no_folder(settings: FolderSettings) -> str | None:
    try:
        is_there = settings.path.is_dir()
    except OSError:
        is_there = False
    return None if is_there else "There is no such folder on this machine."


SOURCE_KIND = SourceKind(
    connector=_connector, settings=FolderSettings, credential=NoCredential, missing=_no_folder
)
