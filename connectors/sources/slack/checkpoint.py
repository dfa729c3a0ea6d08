"""Where a run of Slack stands, as a checkpoint keeps it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from connectors.checkpoints import stored
from connectors.connector import Checkpoint
from connectors.sources.slack.models import is_ts


@dataclass(frozen=True, slots=True)
class Position:
    """In a channel, all of it newer than `latest` is done; so are the channels whose ids are lower."""

    channel: str
    latest: str
    whole: bool = False
    """The channel is new, and is read down to its beginning."""


@dataclass(frozen=True, slots=True)
class Mark:
    state: Mapping[str, Any] = field(default_factory=dict)
    """Of the run, in words of the way by which the workspace is read."""
    at: Position | None = None
    """None in a mark that was kept: the run is done."""

    @classmethod
    def of(cls, since: Checkpoint | None) -> Self | None:
        """Nothing where it says nothing sensible: then all is compared from the start."""
        match stored(since):
            case {"slack": dict(state), "at": "done"}:
                return cls(state)
            case {"slack": dict(state), "at": [str(channel), str(latest), bool(whole)]} if (
                not latest or is_ts(latest)
            ):
                return cls(state, Position(channel, latest, whole))
            case _:
                return None

    def moved(self, to: Position) -> Checkpoint:
        return replace(self, at=to).checkpoint()

    def done(self) -> Checkpoint:
        return replace(self, at=None).checkpoint()

    def checkpoint(self) -> Checkpoint:
        at = self.at
        told = "done" if at is None else [at.channel, at.latest, at.whole]
        return Checkpoint(json.dumps({"slack": self.state, "at": told}))
