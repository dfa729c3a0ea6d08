"""How far a run has come: between which commits, and how many of the files in between are done."""

import json
from dataclasses import dataclass
from typing import TypeAlias

from connectors import checkpoints
from connectors.connector import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The way from one commit to another, or from nothing to one."""

    base: str | None
    commit: str
    done: int = 0
    """Files, in git's order."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """All that a commit has was read."""

    commit: str


Place: TypeAlias = Stage | Arrived


def stored(place: Place) -> dict[str, object]:
    """As JSON values."""
    match place:
        case Stage(base=base, commit=commit, done=done):
            return {"base": base, "commit": commit, "done": done}
        case Arrived(commit):
            return {"commit": commit}


def place_of(value: object) -> Place | None:
    """What was stored; nothing for what says nothing sensible."""
    match value:
        case {"base": str() | None as base, "commit": str(commit), "done": int(done)}:
            return Stage(base=base, commit=commit, done=max(done, 0))
        case {"commit": str(commit)}:
            return Arrived(commit)
        case _:
            return None


def checkpoint(place: Place, chosen: str) -> Checkpoint:
    """`chosen` stands for the settings that choose files: with others, one begins from the start."""
    return Checkpoint(json.dumps({**stored(place), "chosen": chosen}))


def place(since: Checkpoint | None, chosen: str) -> Place | None:
    """What a checkpoint says; nothing for one that says nothing sensible, or of other settings."""
    told = checkpoints.stored(since)
    return place_of(told) if isinstance(told, dict) and told.get("chosen") == chosen else None
