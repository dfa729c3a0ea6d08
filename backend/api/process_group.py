"""The processes of one `quarry serve`, as each of them knows the others: by files in a folder that they share."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from backend.store.runs import Process
from backend.sync.run_lease import is_dead, this_process

SYNC_WORKER = "sync worker"
"""The name of the process that syncs and serves nothing."""


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    folder: Path
    """Also holds the metrics of all processes; those of one that has died are still counted."""
    name: str
    """Of this process, such as `server 1`."""

    def join(self) -> None:
        """Make this process known to the others, in place of an earlier one of its name."""
        draft = self.folder / f"{self.name}.{os.getpid()}"
        draft.write_text(json.dumps(asdict(this_process())), encoding="utf-8")
        draft.replace(self.folder / f"{self.name}.json")

    def members(self) -> dict[str, Process]:
        """Return the live processes by name."""
        files = sorted(self.folder.glob("*.json"))
        found = {
            file.stem: Process(**json.loads(file.read_text(encoding="utf-8"))) for file in files
        }
        return {name: process for name, process in found.items() if not is_dead(process)}

    def other_servers(self) -> set[Process]:
        """Return the live processes that serve requests, without this one."""
        members = self.members()
        return {members[name] for name in members.keys() - {self.name, SYNC_WORKER}}
