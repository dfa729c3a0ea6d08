"""The processes of one server, as each knows the others."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from backend.api.process_group import SYNC_WORKER, ProcessGroup, make_group_folder
from backend.sync.run_lease import this_process

_JOIN = "import sys; from pathlib import Path; from backend.api.process_group import ProcessGroup; ProcessGroup(Path(sys.argv[1]), 'server 1').join()"


def _join_and_die(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", _JOIN, str(folder)], check=True, cwd=Path.cwd())


def test_each_process_knows_those_that_are_alive(tmp_path: Path) -> None:
    first, second = ProcessGroup(tmp_path, "server 1"), ProcessGroup(tmp_path, "server 2")
    first.join()
    assert second.members() == {"server 1": this_process()}
    assert second.other_servers() == {this_process()}
    assert first.other_servers() == set()


def test_what_only_syncs_is_no_server(tmp_path: Path) -> None:
    ProcessGroup(tmp_path, SYNC_WORKER).join()
    group = ProcessGroup(tmp_path, "server 1")
    assert (set(group.members()), group.other_servers()) == ({SYNC_WORKER}, set())


def test_a_process_that_has_died_is_none_of_them_until_another_takes_its_place(
    tmp_path: Path,
) -> None:
    _join_and_die(tmp_path)
    group = ProcessGroup(tmp_path, "server 2")
    assert (tmp_path / "server 1.json").is_file()
    assert group.members() == {}
    replace(group, name="server 1").join()
    assert set(group.members()) == {"server 1"}


def test_folders_of_servers_that_were_killed_are_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed, odd, empty = (tmp_path / f"quarry-serve-{name}" for name in ("killed", "odd", "empty"))
    for folder in (killed, odd, empty, tmp_path / "other"):
        folder.mkdir()
    _join_and_die(killed)
    _join_and_die(tmp_path / "other")
    (odd / "note.json").write_text("{")
    with make_group_folder() as folder:
        with make_group_folder():
            assert folder.is_dir()
        assert ProcessGroup(folder, "server 1").members() == {}
        left = {each.name for each in tmp_path.iterdir()}
        assert left == {folder.name, "quarry-serve-odd", "quarry-serve-empty", "other"}
    assert not folder.exists()
