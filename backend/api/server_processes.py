"""The processes of one `quarry serve`. Each writes a file into a folder that they share, and finds the others there."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from backend.store.sync.runs import Process
from backend.sync.run_lease import is_dead, this_process

SYNC_WORKER = "sync worker"
"""The name of the process that syncs and serves nothing."""
_SUPERVISOR = "supervisor"
"""The name of the process that keeps the others running."""
_PREFIX = "quarry-serve-"


@dataclass(frozen=True, slots=True)
class ServerProcesses:
    """The processes that share a folder, seen from one of them."""

    folder: Path
    """Also holds the metrics of all processes; those of one that has died are still counted."""
    name: str
    """Of this process, such as `server 1`."""

    def register(self) -> None:
        """Make this process known to the others, in place of an earlier one of its name."""
        draft = self.folder / f"{self.name}.{os.getpid()}"
        draft.write_text(json.dumps(asdict(this_process())), encoding="utf-8")
        draft.replace(self.folder / f"{self.name}.json")

    def live(self) -> dict[str, Process]:
        """Return the live processes by name, without their supervisor."""
        found = _read_processes(self.folder)
        return {
            name: process
            for name, process in found.items()
            if name != _SUPERVISOR and not is_dead(process)
        }

    def other_servers(self) -> set[Process]:
        """Return the live processes that serve requests, without this one."""
        live = self.live()
        return {live[name] for name in live.keys() - {self.name, SYNC_WORKER}}


def _read_processes(folder: Path) -> dict[str, Process]:
    return {
        file.stem: Process(**json.loads(file.read_text(encoding="utf-8")))
        for file in sorted(folder.glob("*.json"))
    }


@contextmanager
def make_shared_folder() -> Iterator[Path]:
    """Make the folder that the processes under this supervisor share, and remove it in the end.

    Folders of servers that were killed are removed first.
    """
    _remove_abandoned(Path(gettempdir()))
    with TemporaryDirectory(prefix=_PREFIX) as name:
        ServerProcesses(Path(name), _SUPERVISOR).register()
        yield Path(name)


def _remove_abandoned(temporary: Path) -> None:
    for folder in temporary.glob(f"{_PREFIX}*"):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Return whether all processes of a folder have died; one that names none may be of a server about to start."""
    try:
        found = _read_processes(folder)
    except (OSError, ValueError, TypeError):
        # Another user's, or of another version.
        return False
    return bool(found) and all(map(is_dead, found.values()))
