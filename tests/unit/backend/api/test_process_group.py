"""The processes of one server, as each knows the others."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from backend.api.process_group import SYNC_WORKER, ProcessGroup
from backend.sync.run_lease import this_process


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
    join = "import sys; from pathlib import Path; from backend.api.process_group import ProcessGroup; ProcessGroup(Path(sys.argv[1]), 'server 1').join()"
    subprocess.run([sys.executable, "-c", join, str(tmp_path)], check=True, cwd=Path.cwd())
    group = ProcessGroup(tmp_path, "server 2")
    assert (tmp_path / "server 1.json").is_file()
    assert group.members() == {}
    replace(group, name="server 1").join()
    assert set(group.members()) == {"server 1"}
