"""Versions of the local index: a folder each, and a manifest that names them.

The index of a folder is created where there is none, and files that are missing are rebuilt when it is opened.

Activating a version replaces the manifest and then removes the former folder. A crash before the replacement
has changed nothing; a crash after it leaves a folder that the manifest does not name, which the next
`start_build`, `activate` or `discard_build` removes.
"""

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from connectors.errors import (
    ActionRequiredError,
    DamagedDataError,
    NotConfiguredError,
    TemporarilyUnavailableError,
)
from indexing.embedding.embedder import EmbedderIdentity
from indexing.index.protocols import Index, IndexWriter
from indexing.index.versions import (
    IndexVersion,
    IndexVersionReplacedError,
    OpenedVersion,
    VersionCheckedIndex,
    VersionCheckedWriter,
    build_in_progress,
    describe_embedder,
    embedder_mismatch,
)
from indexing.local import maintenance, sql, tantivy_index, vector_file
from indexing.local.database import (
    Connection,
    State,
    connect,
    connect_writer,
    database_file,
    read_meta,
    read_state,
    transaction,
    translate_errors,
    write_meta,
    writer_lock,
)
from indexing.local.searcher import LocalIndex
from indexing.local.tantivy_index import FulltextDamagedError, FulltextIndex
from indexing.local.writer import LocalIndexWriter, allow_writes
from indexing.text.analysis import BY_LANGUAGE, Analysis, find_analysis

FILE = "editions.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class VersionFolder:
    """An index version and the name of its folder. A name is never used twice."""

    folder: str
    index_version: IndexVersion


@dataclass(frozen=True, slots=True)
class Manifest:
    active: VersionFolder | None = None
    building: VersionFolder | None = None

    @property
    def folders(self) -> frozenset[str]:
        return frozenset(each.folder for each in (self.active, self.building) if each)


def read_manifest(home: Path) -> Manifest:
    """Read the manifest in `home`; it is empty where there is no file.

    Raises:
        DamagedDataError: it cannot be read, or has another format.
    """
    return parse_manifest(home, read_bytes(str(home / FILE)))


def read_bytes(file: str) -> bytes:
    """Return the content of the manifest's file; empty where there is none."""
    # Read twice by every search: without a path and a file object it takes a sixth of the time.
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return b""
    try:
        return os.read(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def parse_manifest(home: Path, content: bytes) -> Manifest:
    """Parse what `read_bytes` returned; raises as `read_manifest` does."""
    if not content:
        return Manifest()
    try:
        fields = json.loads(content)
        if fields["format"] != _FORMAT:
            raise ValueError(f"format {fields['format']}")
        return Manifest(_from_json(fields["active"]), _from_json(fields["building"]))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedDataError(
            f"The file {home / FILE}, which names the folders of the index, cannot be read: {error}. Remove"
            f" {home} and sync again; nothing is lost but the time to index."
        ) from error


def write_manifest(home: Path, manifest: Manifest) -> None:
    """Replace the file atomically; it is on disk when this returns."""
    content = {
        "format": _FORMAT,
        "active": manifest.active and _to_json(manifest.active),
        "building": manifest.building and _to_json(manifest.building),
    }
    partial = home / f"{FILE}.partial"
    with partial.open("w", encoding="utf-8") as file:
        file.write(json.dumps(content, indent=2))
        file.flush()
        os.fsync(file.fileno())
    partial.replace(home / FILE)
    _flush_directory(home)


def new_version_folder(index_version: IndexVersion) -> VersionFolder:
    """Choose a folder name that shows the model and was never used before.

    A hash of the embedder would not do: an index that was opened before a rebuild for the same embedder
    must not take the new folder for its own.
    """
    slug = re.sub(r"[^A-Za-z0-9]+", "-", index_version.embedder.model).strip("-").lower()[-40:]
    return VersionFolder(f"{slug or 'model'}-{os.urandom(4).hex()}", index_version)


def _to_json(version: VersionFolder) -> dict[str, Any]:
    described = {
        "embedder": asdict(version.index_version.embedder),
        "called": version.index_version.model_name,
    }
    return {"folder": version.folder, "edition": described}


def _from_json(fields: dict[str, Any] | None) -> VersionFolder | None:
    if fields is None:
        return None
    described = fields["edition"]
    embedder = EmbedderIdentity(**described["embedder"])
    return VersionFolder(fields["folder"], IndexVersion(embedder, described["called"]))


def _flush_directory(folder: Path) -> None:
    """Make a rename survive a power cut, on systems where a directory can be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_index(folder: Path, identity: EmbedderIdentity) -> LocalIndex:
    """Open the index in `folder` for search.

    Raises:
        NotConfiguredError: the index was made with another embedder.
        DamagedDataError: it is damaged and cannot be rebuilt, or has another format.
        TemporarilyUnavailableError: it must be created or rebuilt while another process holds its lock.
    """
    return LocalIndex(folder, identity.dimension, create_index(folder, identity))


def open_writer(
    folder: Path, identity: EmbedderIdentity, check: Callable[[], None] = allow_writes
) -> LocalIndexWriter:
    """Open the index in `folder` for writing; `check` is that of `LocalIndexWriter`.

    Raises as `open_index` does.
    """
    analysis = create_index(folder, identity)
    return LocalIndexWriter(folder, identity.dimension, analysis, check=check)


def create_index(folder: Path, identity: EmbedderIdentity) -> Analysis:
    """Create the index where there is none, and rebuild what is missing of its files.

    Returns:
        the analysis of its words.

    Raises as `open_index` does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with translate_errors(folder), closing(connect(folder)) as connection:
        if not _is_created(connection):
            _create(folder, identity)
        _check_version(folder, connection)
        _check_identity(folder, connection, identity)
        if not _is_complete(folder, connection, identity.dimension):
            _rebuild_missing(folder, identity.dimension)
        return find_analysis(read_meta(connection, "analysis"))


def has_current_words(folder: Path) -> bool:
    """Return whether the words of the index were made by the analysis of new ones.

    Raises DamagedDataError: the index cannot be read.
    """
    with translate_errors(folder), closing(connect(folder)) as connection:
        return read_meta(connection, "analysis") == BY_LANGUAGE.fingerprint


def _is_created(connection: Connection) -> bool:
    return bool(connection.execute(sql.HAS_TABLES).fetchone()[0])


def _create(folder: Path, identity: EmbedderIdentity) -> None:
    with writer_lock(folder), closing(connect_writer(folder)) as connection:
        if _is_created(connection):
            return
        tantivy_index.create(folder, 0, [])
        vector_file.remove(folder, 0)
        with transaction(connection):
            for statement in sql.TABLES:
                connection.execute(statement)
            write_meta(connection, "version", str(sql.SCHEMA_VERSION))
            write_meta(connection, "embedder", json.dumps(asdict(identity)))
            write_meta(connection, "analysis", BY_LANGUAGE.fingerprint)


def _check_version(folder: Path, connection: Connection) -> None:
    found = read_meta(connection, "version")
    if found != str(sql.SCHEMA_VERSION):
        raise DamagedDataError(
            f"The index in {folder} has format {found}; this version of Quarry reads format"
            f" {sql.SCHEMA_VERSION}. Rebuild it: quarry reindex --rebuild. Or remove the folder and"
            " sync again."
        )


def _check_identity(folder: Path, connection: Connection, identity: EmbedderIdentity) -> None:
    found = EmbedderIdentity(**json.loads(read_meta(connection, "embedder") or "{}"))
    if found != identity:
        raise NotConfiguredError(
            f"The index in {folder} was made with {describe_embedder(found)}; configured is"
            f" {describe_embedder(identity)}. Their vectors cannot be compared. Configure the former model"
            " again, or remove the folder and sync again."
        )


def _is_complete(folder: Path, connection: Connection, dimension: int) -> bool:
    state = read_state(connection)
    return _vectors_are_complete(folder, state, dimension) and _fulltext_is_complete(folder, state)


def _vectors_are_complete(folder: Path, state: State, dimension: int) -> bool:
    return vector_file.are_complete(folder, state.vector_epoch, state.slots, dimension)


def _fulltext_is_complete(folder: Path, state: State) -> bool:
    try:
        return FulltextIndex(folder, state.fulltext_epoch).searcher().num_docs >= state.chunks
    except FulltextDamagedError:
        return False


def _rebuild_missing(folder: Path, dimension: int) -> None:
    """Rebuild what is missing; check under the lock, as another process may have done so, or be writing."""
    with writer_lock(folder), closing(connect_writer(folder)) as connection:
        state = read_state(connection)
        if not _vectors_are_complete(folder, state, dimension):
            maintenance.rebuild_vectors(folder, connection, dimension)
        if not _fulltext_is_complete(folder, state):
            maintenance.rebuild_fulltext(folder, connection)


Opened = TypeVar("Opened")

_ERRORS_OF_A_REMOVED_FOLDER = (
    ActionRequiredError,
    TemporarilyUnavailableError,
    OSError,
    sqlite3.Error,
)


class LocalIndexVersions:
    """Implements `indexing.index.versions.IndexVersions` over a folder that several processes may use."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def active(self) -> IndexVersion | None:
        version = read_manifest(self._home).active
        return version.index_version if version else None

    def building(self) -> IndexVersion | None:
        version = read_manifest(self._home).building
        return version.index_version if version else None

    def has_current_words(self) -> bool:
        version = read_manifest(self._home).active
        return version is None or has_current_words(self._home / version.folder)

    def open_index(self, index_version: IndexVersion) -> VersionCheckedIndex:
        return VersionCheckedIndex(partial(self._open_active, index_version, self._open_index))

    def open_writer(self, index_version: IndexVersion) -> VersionCheckedWriter:
        return VersionCheckedWriter(partial(self._open_active, index_version, self._open_writer))

    def start_build(self, index_version: IndexVersion) -> VersionCheckedWriter:
        with self._lock_manifest() as manifest:
            building = manifest.building or new_version_folder(index_version)
            if building.index_version.embedder != index_version.embedder:
                raise build_in_progress(building.index_version, index_version)
            following = replace(manifest, building=building)
            write_manifest(self._home, following)
            self._remove_leftovers(following)
        return VersionCheckedWriter(partial(self._open_writer, building))

    def open_build_writer(self) -> VersionCheckedWriter | None:
        building = read_manifest(self._home).building
        return VersionCheckedWriter(partial(self._open_writer, building)) if building else None

    def open_build_index(self) -> VersionCheckedIndex:
        building = read_manifest(self._home).building
        if building is None:
            raise ValueError("no index version is being built")
        return VersionCheckedIndex(partial(self._open_index, building))

    def activate(self, index_version: IndexVersion) -> None:
        with self._lock_manifest() as manifest:
            following = _with_active(manifest, index_version)
            with self._lock_writes(manifest.active):
                write_manifest(self._home, following)
            self._remove_leftovers(following)

    def discard_build(self) -> None:
        with self._lock_manifest() as manifest:
            following = Manifest(active=manifest.active)
            write_manifest(self._home, following)
            self._remove_leftovers(following)

    def _open_active(
        self, index_version: IndexVersion, open_folder: Callable[[VersionFolder], Opened]
    ) -> Opened:
        """Open the active folder; again if it was replaced while it was being opened."""
        while True:
            version = read_manifest(self._home).active or self._create_first(index_version)
            self._check_presence(version)
            if version.index_version.embedder != index_version.embedder:
                raise embedder_mismatch(version.index_version, index_version)
            try:
                return open_folder(version)
            except IndexVersionReplacedError:
                continue

    def _check_presence(self, version: VersionFolder) -> None:
        """Raise DamagedDataError where the index was lost: an empty one would answer that there is nothing."""
        file = database_file(self._home / version.folder)
        if not file.exists() and version == read_manifest(self._home).active:
            raise DamagedDataError(
                f"The index is lost: {file} is missing. Build it again from what is stored of the documents:"
                " quarry reindex --rebuild."
            )

    def _create_first(self, index_version: IndexVersion) -> VersionFolder:
        with self._lock_manifest() as manifest:
            first = manifest.active or new_version_folder(index_version)
            if manifest.active is None:
                # The manifest names what exists: what is missing later was lost, and is not created again.
                create_index(self._home / first.folder, index_version.embedder)
                write_manifest(self._home, replace(manifest, active=first))
            return first

    def _open_index(self, version: VersionFolder) -> OpenedVersion[Index]:
        guard = FolderGuard(self._home, version.folder)
        with guard.while_current():
            index = open_index(self._home / version.folder, version.index_version.embedder)
        return OpenedVersion(index, guard, index.close)

    def _open_writer(self, version: VersionFolder) -> OpenedVersion[IndexWriter]:
        guard = FolderGuard(self._home, version.folder)
        with guard.while_current():
            folder, identity = self._home / version.folder, version.index_version.embedder
            writer = open_writer(folder, identity, guard.check)
        return OpenedVersion(writer, guard)

    @contextmanager
    def _lock_manifest(self) -> Iterator[Manifest]:
        """Read the manifest and keep other processes from replacing it within the block."""
        self._home.mkdir(parents=True, exist_ok=True)
        with writer_lock(self._home):
            yield read_manifest(self._home)

    def _lock_writes(self, version: VersionFolder | None) -> AbstractContextManager[None]:
        """Make every write to the version either return before the block or fail after it."""
        if version is None or not (self._home / version.folder).is_dir():
            return nullcontext()
        return writer_lock(self._home / version.folder)

    def _remove_leftovers(self, manifest: Manifest) -> None:
        """Remove every folder that is not in the manifest; processes that have its files open can go on reading."""
        for folder in self._home.iterdir():
            if folder.is_dir() and folder.name not in manifest.folders:
                shutil.rmtree(folder, ignore_errors=True)


def _with_active(manifest: Manifest, index_version: IndexVersion) -> Manifest:
    embedder = index_version.embedder
    if manifest.building and manifest.building.index_version.embedder == embedder:
        return Manifest(active=manifest.building)
    if manifest.active and manifest.active.index_version.embedder == embedder:
        return manifest
    raise ValueError(f"neither being built nor active: {index_version.model_name}")


class FolderGuard:
    """Checks that a folder is still in the manifest, at the cost of reading one small file.

    A folder that was removed can still be read by a process that has its files open. A search on it would
    show what was deleted since, or what a person may no longer read. So the manifest is read before and
    after every method. A write that returned has gone to a version that was not gone: the writer checks once
    more while it holds the writer lock, which `activate` takes too.
    """

    def __init__(self, home: Path, folder: str) -> None:
        self._home = home
        self._file = str(home / FILE)
        self._folder = folder
        self._checked = b""

    def check(self) -> None:
        """Raise IndexVersionReplacedError if the manifest no longer names the folder."""
        content = read_bytes(self._file)
        if content and content == self._checked:
            return
        manifest = parse_manifest(self._home, content)
        if self._folder not in manifest.folders:
            raise IndexVersionReplacedError(
                manifest.active.index_version if manifest.active else None
            )
        self._checked = content

    @contextmanager
    def while_current(self) -> Iterator[None]:
        """Guard a block whose result is valid only if the manifest names the folder until its end."""
        self.check()
        try:
            yield
        except _ERRORS_OF_A_REMOVED_FOLDER:
            self.check()
            raise
        self.check()
