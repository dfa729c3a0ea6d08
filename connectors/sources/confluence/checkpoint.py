"""The progress of a sync of Confluence, as a checkpoint stores it."""

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from connectors.connector import Checkpoint, format_timestamp, is_timestamp, load_checkpoint
from connectors.sources.confluence.models import ContentKind

_OVERLAP = timedelta(minutes=20)
"""A run reads changes from that long before the last one began: the search index lags behind."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the list of one kind of content of a space."""

    space: str
    kind: ContentKind
    cursor: str
    """From where the list continues; empty for its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncCheckpoint:
    settings_digest: str
    """If the settings give another digest, everything is compared from the start."""
    since: str = ""
    """The spaces in `completed` were read up to this time by earlier runs."""
    completed: frozenset[str] = frozenset()
    """Ids of spaces."""
    started_at: str = ""
    """When the current run began; empty if there is none."""
    completed_now: frozenset[str] = frozenset()
    """Spaces that the current run has read from the start."""
    position: Position | None = None

    @classmethod
    def parse(cls, since: Checkpoint | None, settings_digest: str) -> Self:
        """Parse a stored checkpoint; one that is invalid or of other settings starts from scratch."""
        match load_checkpoint(since):
            case {
                "confluence": digest,
                "since": str(before),
                "whole": [*completed],
                "began": str(started_at),
                "walked": [*completed_now],
                "at": position,
            } if digest == settings_digest and _are_stamps(before, started_at):
                return cls(
                    settings_digest=settings_digest,
                    since=before,
                    completed=frozenset(map(str, completed)),
                    started_at=started_at,
                    completed_now=frozenset(map(str, completed_now)),
                    position=_parse_position(position),
                )
            case _:
                return cls(settings_digest=settings_digest)

    def start(self, now: datetime) -> Self:
        """Begin a run; one that was interrupted keeps its begin."""
        return (
            self if self.started_at else replace(self, started_at=format_timestamp(now - _OVERLAP))
        )

    def get_cursor(self, space: str, kind: ContentKind) -> str | None:
        """Return from where to read a list, empty for its start; None if it is completed."""
        if self.position is None or self.position.space != space:
            return ""
        kinds = list(ContentKind)
        if kinds.index(kind) < kinds.index(self.position.kind):
            return None
        return self.position.cursor if kind is self.position.kind else ""

    def advance(self, position: Position) -> Self:
        return replace(self, position=position)

    def finish_space(self, space: str) -> Self:
        return replace(self, completed_now=self.completed_now | {space}, position=None)

    def catch_up(self, until: datetime) -> Self:
        """Note that the changes up to that time were read."""
        return replace(self, since=format_timestamp(until))

    def complete(self, existing: frozenset[str]) -> Self:
        """End the run; spaces that no longer exist are removed."""
        return replace(
            self,
            since=self.started_at,
            completed=(self.completed | self.completed_now) & existing,
            started_at="",
            completed_now=frozenset(),
            position=None,
        )

    def to_checkpoint(self) -> Checkpoint:
        at = self.position
        return Checkpoint(
            json.dumps(
                {
                    "confluence": self.settings_digest,
                    "since": self.since,
                    "whole": sorted(self.completed),
                    "began": self.started_at,
                    "walked": sorted(self.completed_now),
                    "at": at and [at.space, str(at.kind), at.cursor],
                }
            )
        )


def _are_stamps(*texts: str) -> bool:
    return all(not one or is_timestamp(one) for one in texts)


def _parse_position(value: object) -> Position | None:
    match value:
        case [str(space), str(kind), str(cursor)] if kind in {*ContentKind}:
            return Position(space, ContentKind(kind), cursor)
        case _:
            return None
