"""A repository as it lies before a run: its files, their contents, and their history."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from connectors.errors import TemporarilyUnavailableError
from connectors.files.paths import Parts
from connectors.git_repository.commit_history import History, history
from connectors.git_repository.git_command import Git, GitFailed
from connectors.git_repository.mirror import Mirror, Tip
from connectors.git_repository.tree import Files, Objects, objects

_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    mirror: Mirror
    commit: str
    """Where the branch ends."""
    branch: str
    files: Files
    objects: Objects
    history: History

    def has(self, commit: str) -> bool:
        """Whether a commit is there; one that no branch leads to is asked of the server once."""
        if self.objects.size(commit) is None:
            self.mirror.obtain(commit)
        return self.objects.size(commit) is not None

    def bring(self, blobs: Sequence[str]) -> None:
        """Have the contents of files at hand, as far as the server gives them.

        Raises:
            GitFailed: the server does not answer, or not us.
        """
        missing = [blob for blob in dict.fromkeys(blobs) if self.objects.size(blob) is None]
        if missing:
            self.mirror.bring(missing)

    def learn(self, commit: str, since: str | None) -> None:
        """Read the log up to a commit: all of it, but for what `since` has where it came before.

        After a history was written anew, what is different may have been touched before that.
        """
        git = self.mirror.view
        before = since if since is not None and _is_before(git, since, commit) else None
        self.history.read(git, commit, before)

    def learn_of(self, paths: Sequence[Parts]) -> None:
        """Read who touched these."""
        self.history.read(self.mirror.view, self.commit, None, paths)


@contextmanager
def opened(mirror: Mirror, tip: Tip) -> Iterator[Copy]:
    """Bring the branch in, and open what is there.

    Raises:
        GitFailed: the server does not answer, or not us.
        TemporarilyUnavailableError: another process fetches into the same folder.
    """
    commit = mirror.fetch(tip)
    git = mirror.view
    with objects(git) as contents, history(git.home / "history.db") as touches:
        yield Copy(
            mirror=mirror,
            commit=commit,
            branch=tip.branch,
            files=Files(git),
            objects=contents,
            history=touches,
        )


def _is_before(git: Git, earlier: str, later: str) -> bool:
    try:
        git.run("merge-base", "--is-ancestor", earlier, later, seconds=_SECONDS)
    except (GitFailed, TemporarilyUnavailableError):
        return False
    return True
