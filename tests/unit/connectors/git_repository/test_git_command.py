import subprocess
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from connectors.errors import TemporarilyUnavailableError
from connectors.git_repository.git_command import GitError, find_git
from tests.support.services.serving import ReceivedRequest, Reply, serve


def test_nothing_of_this_machine_steers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = tmp_path / "ours"
    ours.write_text("[user]\n\tname = Somebody\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(ours))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'user.name=Somebody'")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    (home := tmp_path / "home").mkdir()
    told = find_git(home).run("config", "--list", "--name-only", seconds=10).decode().split()
    assert "user.name" not in told
    assert {"core.hookspath", "http.followredirects", "protocol.allow"} <= set(told)
    printed = find_git(home).run("-c", "alias.told=!env", "told", seconds=10).decode()
    assert "PROXY" not in printed


def test_an_error_is_told_in_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="fatal: not a git repository"):
        find_git(tmp_path).run("log", seconds=10)


def test_what_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    def asleep(request: ReceivedRequest) -> Reply:
        del request
        time.sleep(3)
        return Reply()

    git = find_git(tmp_path)
    with serve(asleep) as service:
        url = f"{service.url}/kb"
        began = time.monotonic()
        with pytest.raises(TemporarilyUnavailableError, match="took longer than 1 seconds"):
            git.run("-c", "protocol.http.allow=always", "ls-remote", url, seconds=0.5 + 0.5)
        assert time.monotonic() - began < 2.9
        left = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout
        assert url.encode() not in left


def test_a_pipe_that_is_left_early_leaves_no_process(tmp_path: Path) -> None:
    fields = find_git(tmp_path).iter_fields(
        "-c", "alias.endless=!yes endless-17 | tr '\\n' '\\0'", "endless"
    )
    assert next(fields) == b"endless-17"
    assert isinstance(fields, Generator)
    fields.close()
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout
    assert b"endless-17" not in left
