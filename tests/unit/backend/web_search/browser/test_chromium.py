"""Which browser is started, and with what."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.web_search.browser.chromium import (
    USER_ID,
    find_chromium,
    list_flags,
    runs_as_root,
    write_launcher,
)
from connectors.errors import NotConfiguredError

# What stands for Chromium: it says what it was started with.
SAYS = """#!/bin/sh
echo "$@"
echo "as $(id -u) $(id -g) $(id -G)"
echo "data $(ulimit -d)"
env
"""


def _write_program(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def test_the_first_browser_of_the_path_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotConfiguredError, match="Install the extra `browser`"):
        find_chromium(None)
    _write_program(tmp_path / "google-chrome", "")
    assert find_chromium(None) == tmp_path / "google-chrome"
    _write_program(tmp_path / "chromium", "")
    assert find_chromium(None) == tmp_path / "chromium"


def test_the_browser_of_the_settings_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(NotConfiguredError, match=r"is not a program\. Install the extra"):
        find_chromium(tmp_path / "chromium")


def test_no_browser_is_started_where_it_cannot_be_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.web_search.browser.chromium.sys.platform", "darwin")
    with pytest.raises(NotConfiguredError, match="on Linux only"):
        find_chromium(None)


def test_no_flag_takes_the_sandbox_away() -> None:
    flags = list_flags(1, 1 << 30)
    assert [flag for flag in flags if "sandbox" in flag] == []
    assert "--proxy-bypass-list=<-loopback>" in flags


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder whose programs the user of the browser may run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_the_launcher_gives_the_browser_few_rights_and_nothing_of_our_environment(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUARRY_LLM_KEY", "only-quarry-may-know-this")
    program = _write_program(open_folder / "chromium", SAYS)
    launcher = write_launcher(open_folder, program, 1 << 30)
    done = subprocess.run(
        [launcher, "--headless", "--user-data-dir=/elsewhere"],
        capture_output=True,
        text=True,
        check=True,
    )
    arguments, who, data, *environment = done.stdout.splitlines()
    assert arguments == f"--headless --user-data-dir={open_folder / 'profile'}"
    own = f"{USER_ID} {USER_ID} {USER_ID}" if runs_as_root() else f"{os.getuid()} "
    assert who.startswith(f"as {own}")
    assert data == f"data {1 << 20}"
    assert {line.partition("=")[0] for line in environment} - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        *("PATH", "LANG", "HOME", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS")
    }
