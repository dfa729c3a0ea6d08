"""The local copy of a branch, opened for reading: its files, their contents, and their history."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from connectors.errors import TemporarilyUnavailableError
from connectors.files.paths import PathParts
from connectors.git_repository.commits import (
    CommitHistory,
    CommitTrees,
    ObjectReader,
    open_history,
    open_objects,
)
from connectors.git_repository.git_command import Git, GitError
from connectors.git_repository.mirror import BranchTip, Mirror

_ANCESTOR_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    mirror: Mirror
    commit: str
    """The last commit of the branch."""
    branch: str
    trees: CommitTrees
    objects: ObjectReader
    history: CommitHistory

    def has_commit(self, commit: str) -> bool:
        """Return whether a commit is present; one that is not is requested from the server once."""
        if self.objects.size(commit) is None:
            self.mirror.fetch_commit(commit)
        return self.objects.size(commit) is not None

    def fetch_blobs(self, blobs: Sequence[str]) -> None:
        """Fetch the file contents that are not present, as far as the server sends them.

        Raises:
            GitError: the server does not answer or refuses.
        """
        missing = [blob for blob in dict.fromkeys(blobs) if self.objects.size(blob) is None]
        if missing:
            self.mirror.fetch_blobs(missing)

    def load_history(self, commit: str, since: str | None) -> None:
        """Load the log up to a commit; without the part up to `since`, where that is an ancestor.

        After a force push the files that differ may have been changed before `since`.
        """
        git = self.mirror.offline_git
        ancestor = since if since is not None and _is_ancestor(git, since, commit) else None
        self.history.load(git, commit, ancestor)

    def load_history_of(self, paths: Sequence[PathParts]) -> None:
        self.history.load(self.mirror.offline_git, self.commit, None, paths)


@contextmanager
def open_repository(mirror: Mirror, tip: BranchTip) -> Iterator[Repository]:
    """Fetch the branch, and open the local copy.

    Raises:
        GitError: the server does not answer or refuses.
        TemporarilyUnavailableError: another process fetches into the same folder.
    """
    commit = mirror.fetch(tip)
    git = mirror.offline_git
    with open_objects(git) as objects, open_history(git.home / "history.db") as history:
        yield Repository(
            mirror=mirror,
            commit=commit,
            branch=tip.branch,
            trees=CommitTrees(git),
            objects=objects,
            history=history,
        )


def _is_ancestor(git: Git, earlier: str, later: str) -> bool:
    try:
        git.run("merge-base", "--is-ancestor", earlier, later, seconds=_ANCESTOR_SECONDS)
    except (GitError, TemporarilyUnavailableError):
        return False
    return True
