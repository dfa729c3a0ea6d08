"""A copy of a repository, of which only what is read comes over the network.

Commits and folders are fetched whole, the contents of files when they are asked for (a partial
clone: `--filter=blob:none`). A server that cannot do so sends everything; nothing else changes.

The copy lies in two folders. One is git's own, with the remote that it fetches from. The other, the
view, has the same objects and no remote: what is read there never asks the network by itself.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.git_repository.git_command import LATER, Git, GitFailed

_ASKED = 60.0
"""Seconds for a question."""
_FETCHED = 3600.0
"""Seconds for a fetch. One that stands still ends earlier, by http.lowSpeedTime."""
_TIP = "refs/quarry/tip"
_SYMBOLIC = "ref: refs/heads/"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Tip:
    """Where a branch ends."""

    commit: str
    ref: str
    """What to fetch: `HEAD` or `refs/heads/…`."""
    branch: str
    """Its name, for people; HEAD where the server does not tell what that is."""


class NoSuchBranch(ActionRequiredError):
    """The repository answers, and has not what is read from it."""


@dataclass(frozen=True, slots=True)
class Mirror:
    git: Git
    """With the remote, named quarry, in its configuration."""
    folder: Path

    def tip(self, branch: str) -> Tip:
        """Where the branch, or without a name the default branch, ends at the server now.

        Raises:
            GitFailed: the server does not answer, or not us.
            NoSuchBranch: there is no such branch, or no commit at all.
        """
        ref = f"refs/heads/{branch}" if branch else "HEAD"
        said = self.git.run("ls-remote", "--symref", "quarry", ref, seconds=_ASKED)
        lines = said.decode("utf-8", "replace").splitlines()
        told = [value for value, _, name in (line.partition("\t") for line in lines) if name == ref]
        commit = next((value for value in told if _COMMIT.fullmatch(value)), None)
        if commit is None:
            raise NoSuchBranch(
                f"it has no branch {branch!r}: correct the name"
                if branch
                else "it has no commit on its default branch: name another branch"
            )
        named = next((value for value in told if value.startswith(_SYMBOLIC)), "")
        return Tip(commit, ref, branch or named.removeprefix(_SYMBOLIC) or "HEAD")

    def fetch(self, tip: Tip) -> str:
        """Bring in what the branch has now, and give its commit: that of the tip, or a newer one.

        Raises:
            GitFailed: the server does not answer, or not us.
            TemporarilyUnavailableError: another process fetches into the same folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with FileLock(self.folder / "quarry.lock", timeout=_ASKED):
                self._make()
                self._fetch("quarry", f"+{tip.ref}:{_TIP}")
                said = self._copy.run("rev-parse", f"{_TIP}^{{commit}}", seconds=_ASKED)
                return said.decode("ascii").strip()
        except Timeout as error:
            raise TemporarilyUnavailableError(
                f"another process fetches into {self.folder}", LATER
            ) from error

    def obtain(self, commit: str) -> None:
        """Bring in a commit that no branch leads to any more, where the server still gives it."""
        try:
            self._fetch("quarry", commit)
        except (GitFailed, TemporarilyUnavailableError):
            return

    def bring(self, blobs: Sequence[str]) -> None:
        """Bring in the contents of files.

        Raises:
            GitFailed: the server does not answer, or not us.
        """
        told = "".join(f"{blob}\n" for blob in blobs).encode("ascii")
        self._fetch("--stdin", "quarry", told=told)

    @property
    def view(self) -> Git:
        """For reading what is there."""
        return Git(
            program=self.git.program,
            home=self.git.home,
            environment={
                "GIT_DIR": str(self.folder / "view.git"),
                "GIT_OBJECT_DIRECTORY": str(self._at / "objects"),
                "GIT_LITERAL_PATHSPECS": "1",
            },
        )

    def _make(self) -> None:
        for name in ("copy.git", "view.git"):
            place = self.folder / name
            if not (place / "HEAD").exists():
                self.git.run("init", "--quiet", "--bare", "--", str(place), seconds=_ASKED)
        # Left by a process that was killed: we hold the only lock that counts.
        for left in self._at.glob("**/*.lock"):
            left.unlink(missing_ok=True)

    def _fetch(self, *what: str, told: bytes = b"") -> None:
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none")
        self._copy.run("fetch", *options, *what, seconds=_FETCHED, told=told)

    @property
    def _copy(self) -> Git:
        return replace(self.git, environment={**self.git.environment, "GIT_DIR": str(self._at)})

    @property
    def _at(self) -> Path:
        return self.folder / "copy.git"
