"""The progress of a sync of Slack, as a checkpoint stores it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from connectors.connector import Checkpoint, load_checkpoint
from connectors.sources.slack.models import BEGINNING, is_ts


@dataclass(frozen=True, slots=True)
class Position:
    """Messages of the channel newer than `latest` were read, and all channels with lower ids."""

    channel: str
    latest: str
    is_new_channel: bool = False
    """The channel is new, and is read back to its first message."""


@dataclass(frozen=True, slots=True)
class SyncCheckpoint:
    state: Mapping[str, Any] = field(default_factory=dict)
    """The state of the run, in the format of the workspace that reads it."""
    position: Position | None = None
    """None in a stored checkpoint: the run is complete."""

    @classmethod
    def parse(cls, since: Checkpoint | None) -> Self | None:
        """Parse a stored checkpoint; None if it is invalid: everything is compared from the start."""
        match load_checkpoint(since):
            case {"slack": dict(state), "at": "done"}:
                return cls(state)
            case {"slack": dict(state), "at": [str(channel), str(latest), bool(is_new)]} if (
                not latest or is_ts(latest)
            ):
                return cls(state, Position(channel, latest, is_new))
            case _:
                return None

    def advance(self, to: Position) -> Checkpoint:
        return replace(self, position=to).to_checkpoint()

    def complete(self) -> Checkpoint:
        return replace(self, position=None).to_checkpoint()

    def to_checkpoint(self) -> Checkpoint:
        at = self.position
        position = "done" if at is None else [at.channel, at.latest, at.is_new_channel]
        return Checkpoint(json.dumps({"slack": self.state, "at": position}))


def parse_listing_position(since: Checkpoint | None) -> Position | None:
    """Return down to where a listing has come; None if it starts from the beginning."""
    match load_checkpoint(since):
        case {"slack listing": [str(channel), str(latest)]} if not latest or is_ts(latest):
            return Position(channel, latest)
        case _:
            return None


def make_listing_checkpoint(position: Position) -> Checkpoint:
    return Checkpoint(json.dumps({"slack listing": [position.channel, position.latest]}))


def parse_groups_position(since: Checkpoint | None) -> str:
    """Return the channel that was listed last among the groups; empty if none was."""
    match load_checkpoint(since):
        case {"slack groups": str(channel)}:
            return channel
        case _:
            return ""


def make_groups_checkpoint(channel: str) -> Checkpoint:
    return Checkpoint(json.dumps({"slack groups": channel}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRunState:
    """The state of a run that uses the API. Times are Unix times by the clock of this machine."""

    started_at: float
    compared_at: float
    """When the last complete comparison began."""
    channels_digest: str
    oldest: str = BEGINNING
    has_new_channels: bool = False

    @classmethod
    def parse(cls, checkpoint: SyncCheckpoint | None) -> Self | None:
        match checkpoint.state if checkpoint else None:
            case {
                "began": int() | float() as started_at,
                "compared": int() | float() as compared_at,
                "channels": str(channels_digest),
                "oldest": str(oldest),
                "new": bool(has_new_channels),
            } if is_ts(oldest):
                return cls(
                    started_at=started_at,
                    compared_at=compared_at,
                    channels_digest=channels_digest,
                    oldest=oldest,
                    has_new_channels=has_new_channels,
                )
            case _:
                return None

    def to_state(self) -> Mapping[str, Any]:
        return {
            "began": self.started_at,
            "compared": self.compared_at,
            "channels": self.channels_digest,
            "oldest": self.oldest,
            "new": self.has_new_channels,
        }
