"""The processes of one server, as each knows the others."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from backend.api.server_processes import SYNC_WORKER, ServerProcesses, make_shared_folder
from backend.sync.run_lease import this_process

_REGISTER = "import sys; from pathlib import Path; from backend.api.server_processes import ServerProcesses; ServerProcesses(Path(sys.argv[1]), 'server 1').register()"


def _register_and_die(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", _REGISTER, str(folder)], check=True, cwd=Path.cwd())


def test_each_process_knows_those_that_are_alive(tmp_path: Path) -> None:
    first, second = ServerProcesses(tmp_path, "server 1"), ServerProcesses(tmp_path, "server 2")
    first.register()
    assert second.live() == {"server 1": this_process()}
    assert second.other_servers() == {this_process()}
    assert first.other_servers() == set()


def test_what_only_syncs_is_no_server(tmp_path: Path) -> None:
    ServerProcesses(tmp_path, SYNC_WORKER).register()
    processes = ServerProcesses(tmp_path, "server 1")
    assert (set(processes.live()), processes.other_servers()) == ({SYNC_WORKER}, set())


def test_a_process_that_has_died_is_none_of_them_until_another_takes_its_place(
    tmp_path: Path,
) -> None:
    _register_and_die(tmp_path)
    processes = ServerProcesses(tmp_path, "server 2")
    assert (tmp_path / "server 1.json").is_file()
    assert processes.live() == {}
    replace(processes, name="server 1").register()
    assert set(processes.live()) == {"server 1"}


@pytest.mark.soak("slow")
def test_folders_of_servers_that_were_killed_are_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed, odd, empty = (tmp_path / f"quarry-serve-{name}" for name in ("killed", "odd", "empty"))
    for folder in (killed, odd, empty, tmp_path / "other"):
        folder.mkdir()
    _register_and_die(killed)
    _register_and_die(tmp_path / "other")
    (odd / "note.json").write_text("{")
    with make_shared_folder() as folder:
        with make_shared_folder():
            assert folder.is_dir()
        assert ServerProcesses(folder, "server 1").live() == {}
        left = {each.name for each in tmp_path.iterdir()}
        assert left == {folder.name, "quarry-serve-odd", "quarry-serve-empty", "other"}
    assert not folder.exists()
