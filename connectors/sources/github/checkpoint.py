"""Where a run of GitHub stands, as a checkpoint keeps it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from connectors.checkpoints import is_stamp, stamp, stored
from connectors.connector import Checkpoint
from connectors.sources.github.content_reader import Start

_OVERLAP = timedelta(minutes=10)
"""A run begins that long before the last one began: GitHub's machines do not agree to the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A part of a repository goes by a key (see `key`)."""

    chosen: str
    """What the settings take in. Where it differs all is compared from the start."""
    since: str = ""
    """The parts in `whole` were read up to here by the runs before."""
    whole: Mapping[str, str] = field(default_factory=dict)
    """With what the last run that read all of it ended."""
    began: str = ""
    """When the run that is under way began; empty where none is."""
    walked: Mapping[str, str] = field(default_factory=dict)
    """The parts that this run is done with; otherwise as `whole`."""
    at: tuple[str, str] | None = None
    """The part that it is in, and from where it goes on there."""

    @classmethod
    def of(cls, since: Checkpoint | None, chosen: str) -> Self:
        """One that begins from the start where it says nothing sensible."""
        match stored(since):
            case {
                "github": told,
                "since": str(before),
                "whole": dict() as whole,
                "began": str(began),
                "walked": dict() as walked,
                "at": at,
            } if told == chosen and all(not one or is_stamp(one) for one in (before, began)):
                return cls(
                    chosen=chosen,
                    since=before,
                    whole=_texts(whole),
                    began=began,
                    walked=_texts(walked),
                    at=_position(at),
                )
            case _:
                return cls(chosen=chosen)

    def begun(self, moment: datetime) -> Self:
        """A run that was broken off began when it began."""
        return self if self.began else replace(self, began=stamp(moment - _OVERLAP))

    def start(self, part: str) -> Start:
        return Start(
            at=self.at[1] if self.at is not None and self.at[0] == part else "",
            since=self.since if part in self.whole else "",
            until=self.whole.get(part, ""),
        )

    def moved(self, part: str, position: str) -> Self:
        return replace(self, at=(part, position))

    def left(self, part: str, until: str) -> Self:
        return replace(self, walked={**self.walked, part: until}, at=None)

    def done(self) -> Self:
        return replace(self, since=self.began, whole=self.walked, began="", walked={}, at=None)

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(
            json.dumps(
                {
                    "github": self.chosen,
                    "since": self.since,
                    "whole": self.whole,
                    "began": self.began,
                    "walked": self.walked,
                    "at": self.at,
                }
            )
        )


def key(repository: int, part: str) -> str:
    return f"{repository}/{part}"


def _texts(stored: Mapping[object, object]) -> dict[str, str]:
    return {
        one: until
        for one, until in stored.items()
        if isinstance(one, str) and isinstance(until, str)
    }


def _position(value: object) -> tuple[str, str] | None:
    match value:
        case [str(part), str(position)]:
            return (part, position)
        case _:
            return None
