"""The progress of a sync of GitHub, as a checkpoint stores it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from connectors.connector import Checkpoint, format_timestamp, is_timestamp, load_checkpoint
from connectors.sources.github.content_reader import PartStart

_OVERLAP = timedelta(minutes=10)
"""A run reads changes from that long before the last one began: the clocks of GitHub's servers differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncCheckpoint:
    """A part of a repository is identified by a key, see `get_part_key`."""

    settings_digest: str
    """If the settings give another digest, everything is compared from the start."""
    since: str = ""
    """The parts in `completed` were read up to this time by earlier runs."""
    completed: Mapping[str, str] = field(default_factory=dict)
    """The end state of the last run that read the part completely."""
    started_at: str = ""
    """When the current run began; empty if there is none."""
    completed_now: Mapping[str, str] = field(default_factory=dict)
    """The parts that the current run has completed, with their end state."""
    position: tuple[str, str] | None = None
    """The part that the run is reading, and the position in it."""

    @classmethod
    def parse(cls, since: Checkpoint | None, settings_digest: str) -> Self:
        """Parse a stored checkpoint; one that is invalid or of other settings starts from scratch."""
        match load_checkpoint(since):
            case {
                "github": digest,
                "since": str(before),
                "whole": dict() as completed,
                "began": str(started_at),
                "walked": dict() as completed_now,
                "at": position,
            } if digest == settings_digest and _are_stamps(before, started_at):
                return cls(
                    settings_digest=settings_digest,
                    since=before,
                    completed=_filter_texts(completed),
                    started_at=started_at,
                    completed_now=_filter_texts(completed_now),
                    position=_parse_position(position),
                )
            case _:
                return cls(settings_digest=settings_digest)

    def start(self, now: datetime) -> Self:
        """Begin a run; one that was interrupted keeps its begin."""
        return (
            self if self.started_at else replace(self, started_at=format_timestamp(now - _OVERLAP))
        )

    def get_part_start(self, part: str) -> PartStart:
        return PartStart(
            position=self.position[1] if self.position and self.position[0] == part else "",
            since=self.since if part in self.completed else "",
            end_state=self.completed.get(part, ""),
        )

    def advance(self, part: str, position: str) -> Self:
        return replace(self, position=(part, position))

    def finish_part(self, part: str, end_state: str) -> Self:
        completed_now = {**self.completed_now, part: end_state}
        return replace(self, completed_now=completed_now, position=None)

    def complete(self) -> Self:
        return replace(
            self,
            since=self.started_at,
            completed=self.completed_now,
            started_at="",
            completed_now={},
            position=None,
        )

    def to_checkpoint(self) -> Checkpoint:
        return Checkpoint(
            json.dumps(
                {
                    "github": self.settings_digest,
                    "since": self.since,
                    "whole": self.completed,
                    "began": self.started_at,
                    "walked": self.completed_now,
                    "at": self.position,
                }
            )
        )


@dataclass(frozen=True, slots=True)
class ListingPosition:
    """How far a listing has come. Repositories are listed in the order of their ids."""

    repository: int = 0
    part: str = ""
    position: str = ""
    """Only the part can parse it; empty for its beginning."""

    @classmethod
    def parse(cls, since: Checkpoint | None) -> Self:
        """Parse a checkpoint; one that is not valid starts from the beginning."""
        match load_checkpoint(since):
            case {"github listing": [int(repository), str(part), str(position)]}:
                return cls(repository, part, position)
            case _:
                return cls()

    def to_checkpoint(self) -> Checkpoint:
        position = [self.repository, self.part, self.position]
        return Checkpoint(json.dumps({"github listing": position}))


@dataclass(frozen=True, slots=True)
class GroupsPosition:
    """How far a listing of groups has come: repositories in the order of their ids, accounts in that of their names."""

    repository: int = 0
    """Those with lower ids were listed, with their accounts."""
    login: str = ""
    """Of this repository, the accounts up to this one were listed."""

    @classmethod
    def parse(cls, since: Checkpoint | None) -> Self:
        """Parse a checkpoint; one that is not valid starts from the beginning."""
        match load_checkpoint(since):
            case {"github groups": [int(repository), str(login)]}:
                return cls(repository, login)
            case _:
                return cls()

    def to_checkpoint(self) -> Checkpoint:
        return Checkpoint(json.dumps({"github groups": [self.repository, self.login]}))


def get_part_key(repository_id: int, part: str) -> str:
    return f"{repository_id}/{part}"


def _are_stamps(*texts: str) -> bool:
    return all(not one or is_timestamp(one) for one in texts)


def _filter_texts(values: Mapping[object, object]) -> dict[str, str]:
    return {
        key: value
        for key, value in values.items()
        if isinstance(key, str) and isinstance(value, str)
    }


def _parse_position(value: object) -> tuple[str, str] | None:
    match value:
        case [str(part), str(position)]:
            return (part, position)
        case _:
            return None
