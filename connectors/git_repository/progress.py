"""How far a sync of a branch has come: between which commits, and how many files are done."""

import json
from dataclasses import dataclass
from typing import TypeAlias

from connectors import connector
from connectors.connector import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class InProgress:
    """Syncing the difference of two commits, or all files of the first one."""

    base: str | None
    commit: str
    done: int = 0
    """Number of files done, in git's order."""


@dataclass(frozen=True, slots=True)
class Completed:
    """All files of a commit are done."""

    commit: str


SyncProgress: TypeAlias = InProgress | Completed


def progress_to_json(progress: SyncProgress) -> dict[str, object]:
    match progress:
        case InProgress(base=base, commit=commit, done=done):
            return {"base": base, "commit": commit, "done": done}
        case Completed(commit):
            return {"commit": commit}


def progress_from_json(value: object) -> SyncProgress | None:
    """Return None for any other value."""
    match value:
        case {"base": str() | None as base, "commit": str(commit), "done": int(done)}:
            return InProgress(base=base, commit=commit, done=max(done, 0))
        case {"commit": str(commit)}:
            return Completed(commit)
        case _:
            return None


def to_checkpoint(progress: SyncProgress, selection: str) -> Checkpoint:
    """Encode progress. `selection` identifies the settings that select files: with others, a sync starts over."""
    return Checkpoint(json.dumps({**progress_to_json(progress), "chosen": selection}))


def from_checkpoint(since: Checkpoint | None, selection: str) -> SyncProgress | None:
    """Return None for a checkpoint that is not valid, or made with another selection."""
    value = connector.load_checkpoint(since)
    if isinstance(value, dict) and value.get("chosen") == selection:
        return progress_from_json(value)
    return None
