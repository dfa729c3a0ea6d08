"""A real git repository, written to by the `git` program."""

import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ANN = "Ann Lee <ann@example.com>"


@dataclass(frozen=True, slots=True)
class Write:
    path: str | bytes
    content: bytes
    mode: str = "100644"
    """100755: an executable file; 120000: a symbolic link to the path in the content."""


@dataclass(frozen=True, slots=True)
class Delete:
    path: str


@dataclass(frozen=True, slots=True)
class Move:
    path: str
    to: str


Step: TypeAlias = Write | Delete | Move


class Repository:
    """A bare repository whose default branch is main."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--bare", "--initial-branch=main")

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run git without the configuration of this machine, and return its output."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            check=True,
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                "HOME": "/nowhere",
            },
        )
        return done.stdout.decode().strip()

    def commit(
        self,
        *steps: Step,
        by: str = ANN,
        at: int | None = None,
        says: str = "A commit.",
        branch: str = "main",
    ) -> str:
        """Commit to the branch, and return the id of the commit. `at` is in seconds since 1970."""
        moment = int(time.time()) if at is None else at
        head = f"commit refs/heads/{branch}\ncommitter {by} {moment} +0000\n".encode()
        onto = f"from refs/heads/{branch}^0\n".encode() if self._has(branch) else b""
        return self.import_([head, data(says.encode()), onto, *_to_commands(steps)], branch)

    def import_(self, stream: Iterable[bytes], branch: str = "main") -> str:
        """Import a stream of `git fast-import`, and return the id of the last commit."""
        process = subprocess.Popen(
            ["git", "fast-import", "--quiet", "--force"], cwd=self.folder, stdin=subprocess.PIPE
        )
        with process:
            assert process.stdin is not None
            process.stdin.writelines(stream)
        assert process.returncode == 0
        return self.git("rev-parse", f"refs/heads/{branch}")

    def _has(self, branch: str) -> bool:
        return bool(self.git("for-each-ref", f"refs/heads/{branch}"))


def _to_commands(steps: Iterable[Step]) -> Iterator[bytes]:
    for step in steps:
        match step:
            case Write(path, content, mode):
                yield f"M {mode} inline ".encode() + quoted(path) + b"\n" + data(content)
            case Delete(path):
                yield b"D " + quoted(path) + b"\n"
            case Move(path, to):
                yield b"R " + quoted(path) + b" " + quoted(to) + b"\n"


def data(content: bytes) -> bytes:
    return f"data {len(content)}\n".encode() + content + b"\n"


def quoted(path: str | bytes) -> bytes:
    """Quote a path for git fast-import."""
    raw = path.encode() if isinstance(path, str) else path
    plain = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./-_ ")
    return b'"' + b"".join(bytes([one]) if one in plain else b"\\%03o" % one for one in raw) + b'"'
