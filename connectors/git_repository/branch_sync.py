"""Reading one branch of a remote repository: its changes, single files, and the list of its files."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self, TypeAlias, TypeVar

from connectors.connector import Change, DocumentListing, KnownVersions
from connectors.files.paths import PathFilter, PathParts, covers_any
from connectors.git_repository.connection import Connection
from connectors.git_repository.file_documents import (
    DocumentOptions,
    FileAccess,
    list_files,
    reread_files,
    sync_files,
)
from connectors.git_repository.git_command import GitError, find_git
from connectors.git_repository.mirror import BranchNotFoundError, Mirror
from connectors.git_repository.progress import Completed, SyncProgress
from connectors.git_repository.remote_url import display_url
from connectors.git_repository.repository import Repository, open_repository

T = TypeVar("T")

AccessLoader: TypeAlias = Callable[[Repository, str], FileAccess]
"""Loads who may read the files of a commit: the last one of the branch, or an earlier one."""

_IGNORED_NAMES = {"Thumbs.db", "desktop.ini"}


@dataclass(frozen=True, slots=True)
class FileFilter:
    """Which files are read: what the globs select, without hidden and temporary files."""

    choice: PathFilter

    @classmethod
    def of(cls, include: Iterable[str], exclude: Iterable[str]) -> Self:
        """Make a filter of globs. Raises ValueError: one of them is not a valid glob."""
        return cls(PathFilter.parse(include, exclude))

    def accepts(self, parts: PathParts) -> bool:
        is_visible = all(self._is_visible(parts[:end]) for end in range(1, len(parts) + 1))
        return is_visible and self.choice.includes(parts)

    def _is_visible(self, parts: PathParts) -> bool:
        name = parts[-1]
        is_hidden = name.startswith((".", "~$")) or name in _IGNORED_NAMES
        return not is_hidden and not covers_any(self.choice.exclude, parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of a remote repository. Every method makes a new connection to the server.

    Every method raises:

    - TemporarilyUnavailableError: the server, or the local disk, is not available now.
    - ActionRequiredError: the settings or the credential must be corrected.
    - RepositoryNotFoundError, BranchNotFoundError: see their classes.
    """

    connection: Connection
    name: str
    """Empty: the default branch."""
    mirror_folder: Path | None
    """A folder in which the local copy is kept between runs."""
    options: DocumentOptions
    load_access: AccessLoader

    def changes(
        self, progress: SyncProgress | None, known: KnownVersions
    ) -> Iterator[Change | SyncProgress]:
        """See `sync_files`. Where the branch has not moved, nothing is fetched."""
        with self._connect() as mirror:
            tip = mirror.find_tip(self.name)
            if progress == Completed(tip.commit):
                yield progress
                return
            with open_repository(mirror, tip) as repository:
                load_access = partial(self.load_access, repository)
                yield from sync_files(repository, self.options, load_access, progress, known)

    def refetch(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """See `Connector.refetch`."""
        with self._open() as repository:
            access = self.load_access(repository, repository.commit)
            yield from reread_files(repository, self.options, access, document_ids)

    def listing(self) -> Iterator[DocumentListing]:
        """Yield every file and who may read it; no file contents are fetched."""
        with self._open() as repository:
            access = self.load_access(repository, repository.commit)
            for parts in list_files(repository, self.options):
                yield DocumentListing(self.options.document_id(parts), access(parts))

    def load_latest(self, load: Callable[[Repository, str], T]) -> T:
        """Return what is loaded from the last commit; its files are fetched as they are read."""
        with self._open() as repository:
            return load(repository, repository.commit)

    def probe(self) -> None:
        """Check that the branch can be read, by one request to the server."""
        with self._connect() as mirror:
            mirror.find_tip(self.name)

    @contextmanager
    def _open(self) -> Iterator[Repository]:
        with (
            self._connect() as mirror,
            open_repository(mirror, mirror.find_tip(self.name)) as found,
        ):
            yield found

    @contextmanager
    def _connect(self) -> Iterator[Mirror]:
        """Use a temporary folder of this call alone: it holds the secrets and is removed at the end."""
        with TemporaryDirectory(prefix="quarry-git-") as folder:
            home = Path(folder)
            try:
                git = self.connection.configure(find_git(home))
                yield Mirror(git, self.mirror_folder or home / "mirror")
            except GitError as error:
                raise self.connection.explain_error(error) from error
            except BranchNotFoundError as error:
                message = f"{display_url(self.connection.remote)}: {error}"
                raise BranchNotFoundError(message) from error
