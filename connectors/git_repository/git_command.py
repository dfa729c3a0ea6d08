"""Running the `git` program, isolated from the configuration of the machine and of repositories.

It reads no configuration but ours, runs no hooks, never prompts, allows one protocol and follows no
redirects. Secrets are passed in its environment and in files of a private folder, never as arguments,
which every user of the machine can list; values from settings are placed where they cannot be options.
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

from connectors.errors import NotConfiguredError, TemporarilyUnavailableError

MINIMUM_VERSION = (2, 39, 4)
"""The first with GIT_NO_LAZY_FETCH."""
RETRY_AFTER = timedelta(minutes=5)

_READ_BYTES = 1 << 16
_MAX_ERROR_LENGTH = 500
_BOILERPLATE = {
    "Please make sure you have the correct access rights",
    "and the repository exists.",
}
_CONFIG = {
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


class GitError(Exception):
    """git exited with an error; the message is the end of its error output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """The git program with a private home folder."""

    program: str
    home: Path
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Added to the fixed configuration: the allowed protocol, the address, the credential."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def run(self, *arguments: str, seconds: float, stdin: bytes = b"") -> bytes:
        """Run a command and return its output.

        Raises:
            GitError: it exited with an error.
            TemporarilyUnavailableError: it took longer than `seconds`.
        """
        with self._start(arguments, subprocess.PIPE) as process:
            try:
                output, errors = process.communicate(stdin, seconds)
            except subprocess.TimeoutExpired as error:
                raise TemporarilyUnavailableError(
                    f"git {arguments[0]} took longer than {seconds:.0f} seconds", RETRY_AFTER
                ) from error
        if process.returncode:
            raise GitError(
                _last_errors(errors) or f"git {arguments[0]} exited with {process.returncode}"
            )
        return output

    def iter_fields(self, *arguments: str) -> Iterator[bytes]:
        """Run a command and yield its output as it comes, split at each NUL.

        Raises:
            TemporarilyUnavailableError: it exited with an error: the local copy is damaged.
        """
        with self._start(arguments, subprocess.DEVNULL) as process:
            yield from _split_fields(_pipe(process.stdout))
            if process.wait():
                raise TemporarilyUnavailableError(
                    f"git {arguments[0]} exited with {process.returncode}", RETRY_AFTER
                )

    @contextmanager
    def open_pipes(self, *arguments: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """Run a command, and give its standard input and output while it runs."""
        with self._start(arguments, subprocess.DEVNULL) as process:
            yield _pipe(process.stdin), _pipe(process.stdout)

    @contextmanager
    def _start(self, arguments: Sequence[str], stderr: int) -> Iterator["subprocess.Popen[bytes]"]:
        process = subprocess.Popen(
            [self.program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=self.home,
            env=self._environment(),
            start_new_session=True,
        )
        try:
            yield process
        finally:
            _kill(process)

    def _environment(self) -> Mapping[str, str]:
        config = {**_CONFIG, **self.config}
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
            # Otherwise a fetch from a server that sends garbage starts another fetch, endlessly.
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_CONFIG_COUNT": str(len(config)),
            **pairs,
            **self.environment,
        }


def find_git(home: Path) -> Git:
    """Find the installed program, to be run with an empty folder as its home.

    Raises:
        NotConfiguredError: git is not installed, or too old.
    """
    program = shutil.which("git")
    if program is None:
        raise NotConfiguredError(
            "git is not installed on this machine: install it (apt install git)"
        )
    # git refuses repositories of other users; here the settings name the repository.
    (home / "gitconfig").write_text("[safe]\n\tdirectory = *\n")
    git = Git(program=program, home=home)
    output = git.run("version", seconds=10).decode("ascii", "replace")
    if tuple(map(int, re.findall(r"\d+", output)[:3])) < MINIMUM_VERSION:
        wanted = ".".join(map(str, MINIMUM_VERSION))
        raise NotConfiguredError(f"{output.strip()} is too old: install git {wanted} or newer")
    return git


def _split_fields(pipe: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while data := pipe.read(_READ_BYTES):
        *fields, rest = (rest + data).split(b"\0")
        yield from fields
    if rest:
        yield rest


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the process and its children, such as ssh, which share its session."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    process.wait()


def _last_errors(errors: bytes) -> str:
    """Join the lines of the error output: those of ssh and of the server come before git's own."""
    lines = map(str.strip, errors.decode("utf-8", "replace").splitlines())
    kept = (line for line in lines if line and line not in _BOILERPLATE)
    return "; ".join(kept)[-_MAX_ERROR_LENGTH:]
