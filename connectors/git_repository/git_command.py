"""The `git` program, run so that nothing of this machine or of a repository steers it.

It reads no configuration but ours, runs no hook, asks nobody, speaks one protocol, follows no
redirect. Secrets reach it through its environment and files of a private folder, never as
arguments; what it is told by owners stands where it cannot be taken for an option.
"""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError

OLDEST = (2, 39, 4)
"""The first with GIT_NO_LAZY_FETCH."""
LATER = timedelta(minutes=5)

_PIECE = 1 << 16
_LONGEST_ERROR = 500
_ADVICE = {
    "Please make sure you have the correct access rights",
    "and the repository exists.",
}
_OURS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.askPass": "",
    "credential.helper": "",
    "protocol.allow": "never",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "60",
    "transfer.bundleURI": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "log.showSignature": "false",
}


class GitFailed(Exception):
    """It ended with an error; the message is what it said last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """The program, with a private folder that it takes for its home."""

    program: str
    home: Path
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Besides ours: the one protocol, the address, the credential."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def run(self, *arguments: str, seconds: float, told: bytes = b"") -> bytes:
        """What it prints, given `told` to read.

        Raises:
            GitFailed: it ended with an error.
            TemporarilyUnavailableError: it did not end within `seconds`.
        """
        with self._started(arguments, subprocess.PIPE) as process:
            try:
                printed, errors = process.communicate(told, seconds)
            except subprocess.TimeoutExpired as error:
                raise TemporarilyUnavailableError(
                    f"git {arguments[0]} did not end within {seconds:.0f} seconds", LATER
                ) from error
        if process.returncode:
            raise GitFailed(_last(errors) or f"git {arguments[0]} ended by {process.returncode}")
        return printed

    def fields(self, *arguments: str) -> Iterator[bytes]:
        """What it prints, cut at each NUL, as it comes.

        Raises:
            TemporarilyUnavailableError: it ended with an error: the repository lies damaged on this disk.
        """
        with self._started(arguments, subprocess.DEVNULL) as process:
            yield from _fields(_pipe(process.stdout))
            if process.wait():
                raise TemporarilyUnavailableError(
                    f"git {arguments[0]} ended by {process.returncode}", LATER
                )

    @contextmanager
    def talking(self, *arguments: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """Its ends to write to and to read from, while it runs."""
        with self._started(arguments, subprocess.DEVNULL) as process:
            yield _pipe(process.stdin), _pipe(process.stdout)

    @contextmanager
    def _started(
        self, arguments: Sequence[str], errors: int
    ) -> Iterator["subprocess.Popen[bytes]"]:
        process = subprocess.Popen(
            [self.program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=self.home,
            env=self._environment(),
            start_new_session=True,
        )
        try:
            yield process
        finally:
            _ended(process)

    def _environment(self) -> Mapping[str, str]:
        config = {**_OURS, **self.config}
        pairs = {
            name: value
            for number, (key, setting) in enumerate(config.items())
            for name, value in (
                (f"GIT_CONFIG_KEY_{number}", key),
                (f"GIT_CONFIG_VALUE_{number}", setting),
            )
        }
        return {
            "PATH": f"{Path(self.program).parent}{os.pathsep}{os.defpath}",
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(self.home / "gitconfig"),
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            # Without it a fetch from a server that answers nonsense begins the next one, without end.
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_CONFIG_COUNT": str(len(config)),
            **pairs,
            **self.environment,
        }


def git_at(home: Path) -> Git:
    """The program of this machine, at home in an empty folder.

    Raises:
        ActionRequiredError: there is none, or it is too old.
    """
    program = shutil.which("git")
    if program is None:
        raise ActionRequiredError(
            "git is not installed on this machine: install it (apt install git)"
        )
    # A repository of another user of this machine is read too: its owner named it.
    (home / "gitconfig").write_text("[safe]\n\tdirectory = *\n")
    git = Git(program=program, home=home)
    said = git.run("version", seconds=10).decode("ascii", "replace")
    if tuple(map(int, re.findall(r"\d+", said)[:3])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise ActionRequiredError(f"{said.strip()} is too old: install git {wanted} or newer")
    return git


def _fields(pipe: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while piece := pipe.read(_PIECE):
        *whole, rest = (rest + piece).split(b"\0")
        yield from whole
    if rest:
        yield rest


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _ended(process: "subprocess.Popen[bytes]") -> None:
    """With the programs that it started itself: they are in a session of their own."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    process.wait()


def _last(errors: bytes) -> str:
    """The words of an error: git's own, and those of ssh and of the server before them."""
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    told = (line.strip() for line in lines if line.strip() and line.strip() not in _ADVICE)
    return "; ".join(told)[-_LONGEST_ERROR:]
