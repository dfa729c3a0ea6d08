"""How far a run has come: between which commits, and how many of the files in between are done."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


Place = Stage | Arrived


def checkpoint(place: Place, chosen: str) -> Checkpoint:
    """`chosen` stands for the settings that choose files: with others, one begins from the start."""
    match place:
        case Stage(base=base, commit=commit, done=done):
            value: Mapping[str, object] = {"base": base, "commit": commit, "done": done}
        case Arrived(commit):
            value = {"commit": commit}
    return Checkpoint(json.dumps({**value, "chosen": chosen}))


def place(since: Checkpoint | None, chosen: str) -> Place | None:
    """What a checkpoint says; nothing for one that says nothing sensible, or of other settings."""
    try:
        stored: Any = json.loads(since.value) if since else None
    except ValueError:
        return None
    match stored:
        case {
            "base": str() | None as base,
            "commit": str(commit),
            "done": int(done),
            "chosen": str(of),
        }:
            return Stage(base=base, commit=commit, done=max(done, 0)) if of == chosen else None
        case {"commit": str(commit), "chosen": str(of)}:
            return Arrived(commit) if of == chosen else None
        case _:
            return None
