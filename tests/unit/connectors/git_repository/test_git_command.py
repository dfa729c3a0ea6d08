import subprocess
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from connectors.errors import TemporarilyUnavailableError
from connectors.git_repository.git_command import GitError, find_git
from tests.support.services.serving import ReceivedRequest, Reply, serve

GONE_SECONDS = 10.0
"""A killed process is listed until the system has buried it: moments, or more on a busy machine."""


def test_configuration_and_environment_of_the_machine_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = tmp_path / "ours"
    ours.write_text("[user]\n\tname = Somebody\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(ours))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'user.name=Somebody'")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    (home := tmp_path / "home").mkdir()
    names = find_git(home).run("config", "--list", "--name-only", seconds=10).decode().split()
    assert "user.name" not in names
    assert {"core.hookspath", "http.followredirects", "protocol.allow"} <= set(names)
    environment = find_git(home).run("-c", "alias.print=!env", "print", seconds=10).decode()
    assert "PROXY" not in environment


def test_an_error_holds_the_words_of_git(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="fatal: not a git repository"):
        find_git(tmp_path).run("log", seconds=10)


def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    ended = threading.Event()

    def never_answer(request: ReceivedRequest) -> Reply:
        del request
        ended.wait(60)
        return Reply()

    git = find_git(tmp_path)
    with serve(never_answer) as service:
        url = f"{service.url}/kb"
        try:
            with pytest.raises(TemporarilyUnavailableError, match="took longer than 1 seconds"):
                git.run("-c", "protocol.http.allow=always", "ls-remote", url, seconds=0.5 + 0.5)
            assert is_gone(url)
        finally:
            ended.set()


def test_a_pipe_that_is_left_early_leaves_no_process(tmp_path: Path) -> None:
    fields = find_git(tmp_path).iter_fields(
        "-c", "alias.endless=!yes endless-17 | tr '\\n' '\\0'", "endless"
    )
    assert next(fields) == b"endless-17"
    assert isinstance(fields, Generator)
    fields.close()
    assert is_gone("endless-17")


def is_gone(argument: str) -> bool:
    """Wait until no process has this in its command line; return whether that came to pass."""
    end = time.monotonic() + GONE_SECONDS
    while argument in list_command_lines():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def list_command_lines() -> str:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout.decode()
