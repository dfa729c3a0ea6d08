"""One branch of one repository, and the shelf on which its files become documents."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from connectors.connector import Change, Known, Listed
from connectors.git_repository.connection import Way
from connectors.git_repository.file_documents import AccessOf, Shelf, again, followed, listed
from connectors.git_repository.git_command import GitFailed, git_at
from connectors.git_repository.mirror import Mirror, NoSuchBranch
from connectors.git_repository.progress import Arrived, Place
from connectors.git_repository.remote_url import spoken
from connectors.git_repository.repository import Copy, opened

Rules: TypeAlias = Callable[[Copy, str], AccessOf]
"""Who may read the files of a commit, which is the copy's or one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Each question reaches the server anew.

    What any of them raises:

    - TemporarilyUnavailableError: the server, or this machine's disk, does not do it now.
    - ActionRequiredError: the repository or the credential must be mended; NoRepository, NoSuchBranch.
    """

    way: Way
    name: str
    """Empty: the default branch."""
    kept: Path | None
    """A folder in which the copy stays."""
    shelf: Shelf
    rules: Rules

    def changes(self, began: Place | None, known: Known) -> Iterator[Change | Place]:
        """See `connectors.git_repository.file_documents.followed`. A branch that stands still is only asked for."""
        with self._reached() as mirror:
            tip = mirror.tip(self.name)
            if began == Arrived(tip.commit):
                yield began
                return
            with opened(mirror, tip) as copy:
                yield from followed(copy, self.shelf, partial(self.rules, copy), began, known)

    def again(self, document_ids: Sequence[str]) -> Iterator[Change]:
        """These anew, changed or not; a Deletion for each that is not there."""
        with self._opened() as copy:
            yield from again(copy, self.shelf, self.rules(copy, copy.commit), document_ids)

    def listing(self) -> Iterator[Listed]:
        """Every file with those who may read it now; no content comes over the network."""
        with self._opened() as copy:
            access = self.rules(copy, copy.commit)
            for parts in listed(copy, self.shelf):
                yield Listed(self.shelf.id_of(parts), access(parts))

    def probe(self) -> None:
        """Ask the server where it ends, and no more."""
        with self._reached() as mirror:
            mirror.tip(self.name)

    @contextmanager
    def _opened(self) -> Iterator[Copy]:
        with self._reached() as mirror, opened(mirror, mirror.tip(self.name)) as copy:
            yield copy

    @contextmanager
    def _reached(self) -> Iterator[Mirror]:
        """In a folder of this question alone, which holds what is secret, and is removed after it."""
        with TemporaryDirectory(prefix="quarry-git-") as folder:
            home = Path(folder)
            try:
                yield Mirror(self.way.prepared(git_at(home)), self.kept or home / "mirror")
            except GitFailed as error:
                raise self.way.trouble(error) from error
            except NoSuchBranch as error:
                raise NoSuchBranch(f"{spoken(self.way.remote)}: {error}") from error
