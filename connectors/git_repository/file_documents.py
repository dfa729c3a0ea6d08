"""The files of a branch as documents, and what changed between two commits.

Ids, titles, links and access of the documents depend on the source: see `DocumentOptions`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from connectors.access import Access
from connectors.batched import batched
from connectors.connector import Change, Deletion, DocumentCount, KnownVersions, Unreadable
from connectors.document import Document
from connectors.extraction.registry import (
    HEAD_SIZE,
    detect_media_type,
    extract,
    is_supported,
    unsupported_format,
)
from connectors.extraction.result import ExtractionError, ExtractionResult
from connectors.files.paths import PathParts, decode_path, encode_path, format_path, make_title
from connectors.git_repository.commits import DeletedFile, FileEntry, LastChange
from connectors.git_repository.progress import Completed, InProgress, SyncProgress
from connectors.git_repository.repository import Repository
from connectors.text_cleaning import shorten_title

FORMAT_VERSION = 1
"""To be raised when the same file yields another document than before."""

_FILES_PER_CHECKPOINT = 200
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_UNKNOWN_CHANGE = LastChange(None, ())

FileAccess: TypeAlias = Callable[[PathParts], Access]
"""Who may read the file at a path."""


def default_title(parts: PathParts, extracted: ExtractionResult) -> str:
    """Return the title that the file states, or else one from its name."""
    return extracted.title or make_title(parts[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOptions:
    """How the files of a branch become documents of a source."""

    source: str
    id_prefix: str
    """Ids are this prefix and the path."""
    parents: tuple[str, ...]
    """Parents above the folders of the path."""
    metadata: Mapping[str, str]
    """Added to the path and the metadata of the file itself."""
    accepts: Callable[[PathParts], bool]
    """Whether a file is read."""
    link: Callable[[PathParts, str], str]
    """Makes the link from the path and the branch name."""
    item_prefix: str = ""
    """Precedes the path where a file is reported as unreadable."""
    title: Callable[[PathParts, ExtractionResult], str] = default_title
    largest_file: int
    """Bytes."""

    def document_id(self, parts: PathParts) -> str:
        return f"{self.id_prefix}{encode_path(parts)}"


def sync_files(
    repository: Repository,
    options: DocumentOptions,
    load_access: Callable[[str], FileAccess],
    progress: SyncProgress | None,
    known: KnownVersions,
) -> Iterator[Change | SyncProgress]:
    """Yield what changed since `progress`, with the new progress every 200 files and at the end.

    An interrupted sync is first completed up to its own commit. Where the last commit cannot be
    fetched any more, all files are compared with the known versions.

    Args:
        load_access: loads the access rules of a commit.
    """
    stages = _plan_stages(repository, progress)
    for stage in stages:
        reader = _DocumentReader(repository, options, load_access(stage.commit))
        yield from _sync_stage(reader, stage, known)
    if not stages:
        yield Completed(repository.commit)


def reread_files(
    repository: Repository,
    options: DocumentOptions,
    access: FileAccess,
    document_ids: Sequence[str],
) -> Iterator[Change]:
    """See `Connector.refetch`."""
    reader = _DocumentReader(repository, options, access)
    for ids in batched(document_ids, _FILES_PER_CHECKPOINT):
        yield from reader.reread(ids)


def list_files(repository: Repository, options: DocumentOptions) -> Iterator[PathParts]:
    """Yield the paths of all files that are read, in a stable order; no contents are fetched."""
    files = repository.trees.list_files(repository.commit)
    return (one.parts for one in files if options.accepts(one.parts))


def _sync_stage(
    reader: "_DocumentReader", stage: InProgress, known: KnownVersions
) -> Iterator[Change | SyncProgress]:
    reader.repository.load_history(stage.commit, stage.base)
    if stage.base is None:
        yield DocumentCount(sum(1 for _ in _accepted_files(reader, stage)))
    accepted = _accepted_files(reader, stage)
    done = stage.done
    for batch in batched(islice(accepted, done, None), _FILES_PER_CHECKPOINT):
        yield from reader.read_batch(batch, known)
        done += len(batch)
        yield InProgress(base=stage.base, commit=stage.commit, done=done)
    yield Completed(stage.commit)


class _ContentUnavailableError(ExtractionError):
    """The content may arrive at another try."""


@dataclass(frozen=True, slots=True)
class _DocumentReader:
    repository: Repository
    options: DocumentOptions
    access: FileAccess

    def read_batch(
        self, batch: Sequence[FileEntry | DeletedFile], known: KnownVersions
    ) -> Iterator[Change]:
        versions = known([self._id(item) for item in batch])
        deleted = (item for item in batch if isinstance(item, DeletedFile))
        yield from (Deletion(self._id(item)) for item in deleted)
        entries = (item for item in batch if isinstance(item, FileEntry))
        changed = [one for one in entries if versions.get(self._id(one)) != _version(one)]
        yield from self._read_entries(changed)

    def reread(self, ids: Sequence[str]) -> Iterator[Change]:
        parsed = (decode_path(one.removeprefix(self.options.id_prefix)) for one in ids)
        paths = [parts for parts in parsed if parts is not None]
        entries = self.repository.trees.find_files(self.repository.commit, paths)
        found = [one for one in entries if self.options.accepts(one.parts)]
        found_ids = {self._id(one) for one in found}
        yield from (Deletion(one) for one in ids if one not in found_ids)
        if found:
            self.repository.load_history_of([one.parts for one in found])
            yield from self._read_entries(found)

    def _read_entries(self, entries: Sequence[FileEntry]) -> Iterator[Document | Unreadable]:
        self.repository.fetch_blobs([entry.blob for entry in entries])
        changes = self.repository.history.last_changes([entry.parts for entry in entries])
        for entry in entries:
            try:
                yield self._document(entry, changes.get(entry.parts, _UNKNOWN_CHANGE))
            except _ContentUnavailableError as error:
                yield self._unreadable(entry, str(error))
            except ExtractionError as error:
                yield self._unreadable(entry, str(error), _version(entry))

    def _document(self, entry: FileEntry, last_change: LastChange) -> Document:
        """Read a file as a document. Raises ExtractionError."""
        options, data = self.options, self._content(entry)
        media_type = detect_media_type(entry.parts[-1], data[:HEAD_SIZE])
        if data and not is_supported(media_type):
            raise unsupported_format(media_type)
        extracted = extract(data, media_type)
        path = {"path": format_path(entry.parts)}
        return Document(
            id=self._id(entry),
            source=options.source,
            title=shorten_title(options.title(entry.parts, extracted)),
            sections=extracted.sections,
            link=options.link(entry.parts, self.repository.branch),
            media_type=media_type,
            access=self.access(entry.parts),
            version=_version(entry),
            metadata={**options.metadata, **path, **extracted.metadata},
            owners=extracted.authors or last_change.authors,
            created_at=extracted.created_at,
            updated_at=last_change.at or extracted.updated_at,
            parents=(*options.parents, *(format_path([part]) for part in entry.parts[:-1])),
        )

    def _content(self, entry: FileEntry) -> bytes:
        """Read the content of a file. Raises ExtractionError: it is not sent, too large, or in Git LFS."""
        size, largest = self.repository.objects.size(entry.blob), self.options.largest_file
        if size is None:
            raise _ContentUnavailableError("the server does not send its content")
        if size > largest:
            raise ExtractionError(f"{size:,} bytes; the limit is {largest:,}")
        data = self.repository.objects.read(entry.blob)
        if data.startswith(_LFS_POINTER):
            raise ExtractionError("its content is in Git LFS, which is not supported yet")
        return data

    def _unreadable(self, entry: FileEntry, reason: str, version: str | None = None) -> Unreadable:
        return Unreadable(
            document_id=self._id(entry),
            item=f"{self.options.item_prefix}{format_path(entry.parts)}",
            reason=reason,
            link=self.options.link(entry.parts, self.repository.branch),
            version=version,
        )

    def _id(self, item: FileEntry | DeletedFile) -> str:
        return self.options.document_id(item.parts)


def _plan_stages(repository: Repository, progress: SyncProgress | None) -> list[InProgress]:
    """Return the steps from where the last sync stopped to the last commit of the branch."""
    match progress:
        case InProgress() if all(
            map(repository.has_commit, filter(None, (progress.base, progress.commit)))
        ):
            return [progress, *_plan_stages(repository, Completed(progress.commit))]
        case Completed(commit) if repository.has_commit(commit):
            if commit == repository.commit:
                return []
            return [InProgress(base=commit, commit=repository.commit)]
        case _:
            return [InProgress(base=None, commit=repository.commit)]


def _accepted_files(
    reader: "_DocumentReader", stage: InProgress
) -> Iterator[FileEntry | DeletedFile]:
    files = _changed_files(reader.repository, stage)
    return (one for one in files if reader.options.accepts(one.parts))


def _changed_files(repository: Repository, stage: InProgress) -> Iterator[FileEntry | DeletedFile]:
    if stage.base is None:
        return repository.trees.list_files(stage.commit)
    return repository.trees.diff(stage.base, stage.commit)


def _version(entry: FileEntry) -> str:
    return f"{FORMAT_VERSION}:{entry.blob}"
