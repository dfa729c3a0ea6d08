"""A folder of this machine as a source, with an optional `access.yaml` that defines who may read what."""

import json
from collections.abc import Iterator, Sequence
from io import BufferedReader
from itertools import islice
from pathlib import Path

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
    load_checkpoint,
    make_checks,
)
from connectors.errors import SourceError, TemporarilyUnavailableError
from connectors.files.paths import PathParts, decode_path
from connectors.files.rule_scopes import RulePlace, RuleScopes
from connectors.files.walker import InaccessiblePath, open_file
from connectors.registry import NoCredential, SourceKind
from connectors.sources.folder.file_documents import FileReader, FileVersion
from connectors.sources.folder.folder_tree import (
    FolderSettings,
    FolderTree,
    check_listable,
    find_missing_folder,
    folder_access,
    load_access_rules,
    open_root,
)

_FILES_PER_CHECKPOINT = 200


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
