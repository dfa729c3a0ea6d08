"""The local copy of a repository, a partial clone: only what is read is fetched.

Commits and folders are fetched whole, file contents when they are needed (`--filter=blob:none`). A
server that does not support this sends everything; nothing else changes.

The copy is two git directories. `copy.git` has the remote, and fetches from it. `view.git` shares
its objects and has no remote: git would otherwise fetch a missing object by itself while reading.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from connectors.errors import NotFoundError, TemporarilyUnavailableError
from connectors.git_repository.git_command import RETRY_AFTER, Git, GitError

_COMMAND_SECONDS = 60.0
_FETCH_SECONDS = 3600.0
"""A fetch that receives nothing ends earlier, by http.lowSpeedTime."""
_TIP_REF = "refs/quarry/tip"
_SYMBOLIC_REF = "ref: refs/heads/"
_COMMIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class BranchTip:
    """The last commit of a branch on the server."""

    commit: str
    ref: str
    """What to fetch: `HEAD` or `refs/heads/…`."""
    branch: str
    """The name to show; HEAD where the server does not say what that is."""


class BranchNotFoundError(NotFoundError):
    """The repository can be read, but does not have the branch, or has no commits."""


@dataclass(frozen=True, slots=True)
class Mirror:
    git: Git
    """Its configuration names the remote `quarry`."""
    folder: Path

    def find_tip(self, branch: str) -> BranchTip:
        """Ask the server for the last commit of the branch, or of the default branch if `branch` is empty.

        Raises:
            GitError: the server does not answer or refuses.
            BranchNotFoundError: there is no such branch, or no commit.
        """
        ref = f"refs/heads/{branch}" if branch else "HEAD"
        output = self.git.run("ls-remote", "--symref", "quarry", ref, seconds=_COMMAND_SECONDS)
        rows = (line.partition("\t") for line in output.decode("utf-8", "replace").splitlines())
        values = [value for value, _, name in rows if name == ref]
        commit = next((value for value in values if _COMMIT_ID.fullmatch(value)), None)
        if commit is None:
            raise BranchNotFoundError(
                f"the branch {branch!r} does not exist: correct the name"
                if branch
                else "the default branch has no commits: set another branch"
            )
        symbolic = next((value for value in values if value.startswith(_SYMBOLIC_REF)), "")
        return BranchTip(commit, ref, branch or symbolic.removeprefix(_SYMBOLIC_REF) or "HEAD")

    def fetch(self, tip: BranchTip) -> str:
        """Fetch the branch, and return its last commit: that of the tip, or a newer one.

        Raises:
            GitError: the server does not answer or refuses.
            TemporarilyUnavailableError: another process fetches into the same folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with FileLock(self.folder / "quarry.lock", timeout=_COMMAND_SECONDS):
                self._prepare_folders()
                self._fetch("quarry", f"+{tip.ref}:{_TIP_REF}")
                revision = f"{_TIP_REF}^{{commit}}"
                output = self._online_git.run("rev-parse", revision, seconds=_COMMAND_SECONDS)
                return output.decode("ascii").strip()
        except Timeout as error:
            raise TemporarilyUnavailableError(
                f"another process fetches into {self.folder}", RETRY_AFTER
            ) from error

    def fetch_commit(self, commit: str) -> None:
        """Fetch a commit that is on no branch any more, if the server still sends it."""
        try:
            self._fetch("quarry", commit)
        except (GitError, TemporarilyUnavailableError):
            return

    def fetch_blobs(self, blobs: Sequence[str]) -> None:
        """Fetch file contents.

        Raises:
            GitError: the server does not answer or refuses.
        """
        lines = "".join(f"{blob}\n" for blob in blobs).encode("ascii")
        self._fetch("--stdin", "quarry", stdin=lines)

    @property
    def offline_git(self) -> Git:
        """git for reading what is present; it cannot reach the remote."""
        return Git(
            program=self.git.program,
            home=self.git.home,
            environment={
                "GIT_DIR": str(self.folder / "view.git"),
                "GIT_OBJECT_DIRECTORY": str(self._copy_folder / "objects"),
                "GIT_LITERAL_PATHSPECS": "1",
            },
        )

    def _prepare_folders(self) -> None:
        for name in ("copy.git", "view.git"):
            folder = self.folder / name
            if not (folder / "HEAD").exists():
                # The template has nothing but samples of hooks.
                options = ("--quiet", "--bare", "--template=")
                arguments = ("init", *options, "--", str(folder))
                self.git.run(*arguments, seconds=_COMMAND_SECONDS)
        # A killed process may have left git's own locks; quarry.lock says that no other is running.
        for lock in self._copy_folder.glob("**/*.lock"):
            lock.unlink(missing_ok=True)

    def _fetch(self, *arguments: str, stdin: bytes = b"") -> None:
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none")
        self._online_git.run("fetch", *options, *arguments, seconds=_FETCH_SECONDS, stdin=stdin)

    @property
    def _online_git(self) -> Git:
        environment = {**self.git.environment, "GIT_DIR": str(self._copy_folder)}
        return replace(self.git, environment=environment)

    @property
    def _copy_folder(self) -> Path:
        return self.folder / "copy.git"
