"""A folder of this machine as a source, with an optional `access.yaml` that defines who may read what.

A disk that goes away is noticed: an unmounted folder must not look like an empty one.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator, Sequence
from datetime import timedelta
from io import BufferedReader
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from connectors.batched import batched
from connectors.connector import (
    Change,
    Check,
    Checkpoint,
    Deletion,
    DocumentCount,
    DocumentListing,
    GroupItem,
    KnownVersions,
    ServerAccess,
    load_checkpoint,
    make_checks,
)
from connectors.errors import SourceError, TemporarilyUnavailableError
from connectors.files.access_rules import (
    ACCESS_FILE,
    MISSPELLED_NAMES,
    OPEN_TO_ALL,
    AccessRules,
    parse_access_rules,
)
from connectors.files.paths import PathFilter, PathParts, covers_any, decode_path, format_path
from connectors.files.rule_scopes import RulePlace, RuleScopes
from connectors.files.walker import (
    File,
    InaccessiblePath,
    describe_os_error,
    find_file,
    open_file,
    walk_files,
)
from connectors.registry import NoCredential, SourceKind
from connectors.setting_types import GlobPatterns
from connectors.sources.folder.file_documents import FileReader, FileVersion

_FILES_PER_CHECKPOINT = 200
_RETRY_AFTER = timedelta(minutes=5)
_SYSTEM_FILES = {"Thumbs.db", "desktop.ini", "lost+found"}


class FolderSettings(BaseModel):
    """Index the files of a folder on this machine. Patterns are matched from the folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path = Field(
        title="Folder on this machine",
        description="Read with all its subfolders. An access.yaml in it defines who may read what.",
    )
    include: GlobPatterns = Field(
        default=(),
        description="Glob patterns of the files to read, such as **/*.md. If empty, all files.",
    )
    exclude: GlobPatterns = Field(
        default=(), description="Glob patterns of the files to leave out."
    )
    largest_file: int = Field(
        default=100_000_000,
        gt=0,
        description="Maximum file size in bytes. Larger files are reported as unreadable.",
    )

    @field_validator("path")
    @classmethod
    def _make_absolute(cls, path: Path) -> Path:
        """Expand no ~name: it would tell whether the server has a user of that name."""
        first = path.parts[0] if path.parts else ""
        if first.startswith("~") and first != "~":
            raise ValueError(f"{path}: write the whole path, from /")
        try:
            return path.expanduser().absolute()
        except RuntimeError as error:
            raise ValueError(
                f"{path}: the server has no home folder; write the whole path, from /"
            ) from error


def folder_access(settings: FolderSettings) -> ServerAccess:
    return ServerAccess(paths=(settings.path,))


def find_missing_folder(settings: FolderSettings) -> str | None:
    """Return what is wrong if the folder does not exist. Asked only when a source is added: a folder
    whose disk is not mounted later is still a source."""
    try:
        exists = settings.path.is_dir()
    except OSError:
        exists = False
    return None if exists else "There is no such folder on this machine."


def load_access_rules(root: Path) -> AccessRules:
    """Load the rules; without an access file everybody may read the folder.

    Raises:
        SourceError: the access file cannot be read, is malformed, or has a similar but wrong name.
    """
    path = root / ACCESS_FILE
    if not os.path.lexists(path):
        _check_similar_names(root)
        return OPEN_TO_ALL
    try:
        # Reading a pipe or a device would block for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise SourceError(f"{path} must be a file")
        if not path.resolve().is_relative_to(root):
            raise SourceError(f"{path} must not be a link that leads out of the folder")
        return parse_access_rules(path.read_bytes(), str(path))
    except OSError as error:
        raise SourceError(
            f"{path} cannot be read ({error.strerror}): without it Quarry does not know who may"
            " read the folder"
        ) from error


def _check_similar_names(root: Path) -> None:
    """Refuse a misspelled access file: without this check it would leave the folder open to everybody."""
    for name in MISSPELLED_NAMES:
        if os.path.lexists(root / name):
            raise SourceError(f"{root / name}: rename the file to {ACCESS_FILE}")


class FolderTree:
    """The files of a folder that its settings select. Hidden files and links are left out."""

    def __init__(self, settings: FolderSettings) -> None:
        """Open the folder. Raises SourceError: it cannot be opened."""
        self.root = open_root(settings.path)
        self._path = settings.path
        self._identity = _get_identity(self.root)
        self._filter = PathFilter.parse(settings.include, settings.exclude)

    def walk(self, after: PathParts = ()) -> Iterator[File | InaccessiblePath]:
        """Yield the selected files after `after`, and each file or folder that cannot be accessed.

        Raises:
            TemporarilyUnavailableError: the disk does not answer.
        """
        try:
            yield from filter(self._includes, walk_files(self.root, self._enters, after))
        except OSError as error:
            raise TemporarilyUnavailableError(
                f"the folder {self.root} went away: {describe_os_error(error)}", _RETRY_AFTER
            ) from error

    def find(self, parts: PathParts) -> File | InaccessiblePath | None:
        """Return the file at a path, or None if it does not exist or is not selected."""
        if not all(self._enters(parts[:end]) for end in range(1, len(parts) + 1)):
            return None
        file = find_file(self.root, parts)
        return file if file is not None and self._includes(file) else None

    def check_unchanged(self) -> None:
        """Fail if the disk went away: an unmounted folder must not look like one with fewer files.

        Raises:
            TemporarilyUnavailableError: another folder, or none, is in its place.
        """
        try:
            is_gone = _get_identity(self._path) != self._identity
        except OSError:
            is_gone = True
        if is_gone:
            raise TemporarilyUnavailableError(
                f"the folder {self.root} went away while it was read", _RETRY_AFTER
            )

    def _enters(self, parts: PathParts) -> bool:
        name = parts[-1]
        is_hidden = name.startswith((".", "~$")) or name in _SYSTEM_FILES
        return not (is_hidden or parts == (ACCESS_FILE,) or covers_any(self._filter.exclude, parts))

    def _includes(self, entry: File | InaccessiblePath) -> bool:
        return isinstance(entry, InaccessiblePath) or self._filter.includes(entry.parts)


def open_root(path: Path) -> Path:
    """Resolve the folder's path.

    Raises:
        SourceError: it cannot be opened.
    """
    try:
        root = path.resolve(strict=True)
        with os.scandir(root):
            return root
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its links form a circle"
        raise SourceError(
            f"the folder {path} cannot be opened ({reason}): connect its disk, let Quarry's"
            " user read it, or correct the path"
        ) from error


def check_listable(entry: InaccessiblePath) -> None:
    """Fail if a folder cannot be listed, lest its files look deleted.

    A path that is too long is passed over: nothing below it has ever been indexed.

    Raises:
        SourceError: permission is denied.
        TemporarilyUnavailableError: the disk does not answer.
    """
    reason = f"{format_path(entry.parts)} cannot be listed ({describe_os_error(entry.error)})"
    match entry.error:
        case PermissionError():
            raise SourceError(f"{reason}; or exclude it")
        case OSError(errno=errno.ENAMETOOLONG):
            return
        case _:
            raise TemporarilyUnavailableError(reason, _RETRY_AFTER)


def _get_identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino


class FolderConnector:
    """Reads the files of a folder and its subfolders, without hidden files and without following links."""

    def __init__(self, source: str, source_id: int, settings: FolderSettings) -> None:
        self._source = source
        self._source_id = source_id
        self._settings = settings

    @property
    def source(self) -> str:
        return self._source

    def changes(self, since: Checkpoint | None, known: KnownVersions) -> Iterator[Change]:
        """Yield what changed, with a checkpoint every 200 files.

        A file whose size and time are those of the stored version counts as unchanged; one with
        another time but the same content is `Unchanged`. Deletions are found from `listing`.

        Raises:
            TemporarilyUnavailableError: the disk does not answer, or went away during the walk.
            SourceError: the folder does not exist, or its access file is malformed.
        """
        tree, reader, scopes = self._open()
        position = _parse_position(since)
        if since is None or position:
            yield DocumentCount(sum(1 for _ in FolderTree(self._settings).walk()))
        for batch in batched(tree.walk(position), _FILES_PER_CHECKPOINT):
            stored = known([reader.make_id(entry.parts) for entry in batch])
            for entry in batch:
                version = FileVersion.parse(stored.get(reader.make_id(entry.parts)))
                change = reader.read_change(entry, scopes.find_access(entry.parts), version)
                if change is not None:
                    yield change
            yield Checkpoint(json.dumps({"after": batch[-1].parts}))
        tree.check_unchanged()
        yield Checkpoint(json.dumps({"after": None}))

    def listing(self, since: Checkpoint | None) -> Iterator[DocumentListing]:
        """Yield every file with its present readers. No file is opened.

        Raises:
            TemporarilyUnavailableError: the disk does not answer, or went away during the walk.
            SourceError: the folder or one in it cannot be listed, or the access file is malformed.
        """
        del since
        tree, reader, scopes = self._open()
        for entry in tree.walk():
            if isinstance(entry, InaccessiblePath):
                check_listable(entry)
            yield DocumentListing(reader.make_id(entry.parts), scopes.find_access(entry.parts))
        tree.check_unchanged()

    def groups(self, since: Checkpoint | None) -> Iterator[GroupItem]:
        """See `ListsGroups.groups`; nothing but the access file is read.

        Raises:
            SourceError: the folder does not exist, or its access file is malformed.
        """
        del since
        yield from self._load_scopes(open_root(self._settings.path)).list_groups()

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.refetch`."""
        tree, reader, scopes = self._open()
        for document_id in document_ids:
            parts = self._parse_id(document_id)
            entry = tree.find(parts) if parts else None
            change = (
                reader.read_change(entry, scopes.find_access(entry.parts), None) if entry else None
            )
            yield change or Deletion(document_id)

    def check(self) -> Iterator[Check]:
        """See `Connector.check`."""
        problem = self._find_problem()
        yield from make_checks(problem, problem)

    def original(self, document_id: str, version: str) -> BufferedReader | None:
        """See `ProvidesOriginal.original`."""
        wanted = FileVersion.parse(version)
        parts = self._parse_id(document_id)
        if wanted is None or parts is None:
            return None
        try:
            file = open_file(open_root(self._settings.path), parts)
        except (OSError, ValueError, SourceError):
            return None
        if wanted.matches_file(file):
            return file
        file.close()
        return None

    def _open(self) -> tuple[FolderTree, FileReader, RuleScopes]:
        tree = FolderTree(self._settings)
        reader = FileReader(self._source, tree.root, self._settings.largest_file)
        return tree, reader, self._load_scopes(tree.root)

    def _load_scopes(self, root: Path) -> RuleScopes:
        place = RulePlace(self._source_id, [str(self._settings.path)])
        return RuleScopes.of(load_access_rules(root), place)

    def _parse_id(self, document_id: str) -> PathParts | None:
        return decode_path(document_id.removeprefix(f"{self._source}:"))

    def _find_problem(self) -> str | None:
        try:
            tree, _, _ = self._open()
            any(True for _ in islice(tree.walk(), 1))
        except (SourceError, TemporarilyUnavailableError) as error:
            return str(error)
        return None


def _parse_position(since: Checkpoint | None) -> PathParts:
    """Return the path after which the walk goes on.

    An invalid checkpoint restarts the walk: every file is compared once more, and none is missed.
    """
    value = load_checkpoint(since)
    after = value.get("after") if isinstance(value, dict) else None
    if not isinstance(after, list) or not all(isinstance(name, str) for name in after):
        return ()
    return tuple(after)


def _make_connector(
    source: str, source_id: int, settings: FolderSettings, credential: NoCredential
) -> FolderConnector:
    del credential
    return FolderConnector(source, source_id, settings)


SOURCE_KIND = SourceKind(
    connector=_make_connector,
    settings=FolderSettings,
    credential=NoCredential,
    server_access=folder_access,
    find_missing=find_missing_folder,
)
