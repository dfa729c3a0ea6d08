"""Where a run of GitHub stands, as a checkpoint keeps it."""

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from connectors.connector import Checkpoint
from connectors.extraction.extracted import parsed_time
from connectors.github.walk import stamp

_OVERLAP = timedelta(minutes=10)
"""A run begins that long before the last one began: GitHub's machines do not agree to the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    chosen: str
    """What the settings take in. Where it differs all is compared from the start."""
    since: str = ""
    """The repositories of `whole` were read up to here by the runs before."""
    whole: frozenset[int] = frozenset()
    began: str = ""
    """When the run that is under way began; empty where none is."""
    walked: frozenset[int] = frozenset()
    """Repositories that this run is done with."""
    at: tuple[int, str] | None = None
    """The repository that it is in, and from where in time it goes on."""

    @classmethod
    def of(cls, since: Checkpoint | None, chosen: str) -> Self:
        """One that begins from the start where it says nothing sensible."""
        try:
            stored = json.loads(since.value) if since else None
        except ValueError:
            return cls(chosen=chosen)
        match stored:
            case {
                "github": told,
                "since": str(before),
                "whole": [*whole],
                "began": str(began),
                "walked": [*walked],
                "at": at,
            } if told == chosen and all(map(_is_stamp, (before, began))):
                return cls(
                    chosen=chosen,
                    since=before,
                    whole=_ids(whole),
                    began=began,
                    walked=_ids(walked),
                    at=_position(at),
                )
            case _:
                return cls(chosen=chosen)

    def begun(self, moment: datetime) -> Self:
        """A run that was broken off began when it began."""
        return self if self.began else replace(self, began=stamp(moment - _OVERLAP))

    def start(self, repository: int) -> str:
        """From where in time to read the repository; empty for all of it."""
        if self.at is not None and self.at[0] == repository:
            return self.at[1]
        return self.since if repository in self.whole else ""

    def moved(self, repository: int, then: str) -> Self:
        return replace(self, at=(repository, then))

    def left(self, repository: int) -> Self:
        return replace(self, walked=self.walked | {repository}, at=None)

    def done(self) -> Self:
        return replace(
            self, since=self.began, whole=self.walked, began="", walked=frozenset(), at=None
        )

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(
            json.dumps(
                {
                    "github": self.chosen,
                    "since": self.since,
                    "whole": sorted(self.whole),
                    "began": self.began,
                    "walked": sorted(self.walked),
                    "at": self.at,
                }
            )
        )


def _is_stamp(text: str) -> bool:
    moment = parsed_time(text) if text else None
    return not text or (moment is not None and stamp(moment) == text)


def _ids(values: list[object]) -> frozenset[int]:
    return frozenset(one for one in values if isinstance(one, int))


def _position(value: object) -> tuple[int, str] | None:
    match value:
        case [int(repository), str(then)] if _is_stamp(then):
            return (repository, then)
        case _:
            return None
