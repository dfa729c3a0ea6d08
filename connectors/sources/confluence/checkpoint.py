"""Where a run of Confluence stands, as a checkpoint keeps it."""

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from connectors.checkpoints import is_stamp, stamp, stored
from connectors.connector import Checkpoint
from connectors.sources.confluence.models import ContentKind

_OVERLAP = timedelta(minutes=20)
"""A run begins that long before the last one began: the search knows what changed only after a while."""


@dataclass(frozen=True, slots=True)
class Position:
    """In the list of one kind of content of a space."""

    space: str
    kind: ContentKind
    start: str
    """From where the list goes on; empty for its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    chosen: str
    """What the settings take in. Where it differs all is compared from the start."""
    since: str = ""
    """The spaces of `whole` were read up to here by the runs before."""
    whole: frozenset[str] = frozenset()
    """Ids of spaces."""
    began: str = ""
    """When the run that is under way began; empty where none is."""
    walked: frozenset[str] = frozenset()
    """Spaces that this run has read from the beginning."""
    at: Position | None = None

    @classmethod
    def of(cls, since: Checkpoint | None, chosen: str) -> Self:
        """One that begins from the start where it says nothing sensible."""
        match stored(since):
            case {
                "confluence": told,
                "since": str(before),
                "whole": [*whole],
                "began": str(began),
                "walked": [*walked],
                "at": at,
            } if told == chosen and all(not one or is_stamp(one) for one in (before, began)):
                return cls(
                    chosen=chosen,
                    since=before,
                    whole=frozenset(map(str, whole)),
                    began=began,
                    walked=frozenset(map(str, walked)),
                    at=_position(at),
                )
            case _:
                return cls(chosen=chosen)

    def begun(self, moment: datetime) -> Self:
        """A run that was broken off began when it began."""
        return self if self.began else replace(self, began=stamp(moment - _OVERLAP))

    def start(self, space: str, kind: ContentKind) -> str | None:
        """From where the list goes on; none where it is read."""
        if self.at is None or self.at.space != space:
            return ""
        kinds = list(ContentKind)
        if kinds.index(kind) < kinds.index(self.at.kind):
            return None
        return self.at.start if kind is self.at.kind else ""

    def moved(self, position: Position) -> Self:
        return replace(self, at=position)

    def left(self, space: str) -> Self:
        return replace(self, walked=self.walked | {space}, at=None)

    def caught_up(self, moment: datetime) -> Self:
        """What changed up to then was read."""
        return replace(self, since=stamp(moment))

    def done(self, spaces: frozenset[str]) -> Self:
        """`spaces` are those that are there."""
        whole = (self.whole | self.walked) & spaces
        return replace(self, since=self.began, whole=whole, began="", walked=frozenset(), at=None)

    def checkpoint(self) -> Checkpoint:
        at = self.at
        return Checkpoint(
            json.dumps(
                {
                    "confluence": self.chosen,
                    "since": self.since,
                    "whole": sorted(self.whole),
                    "began": self.began,
                    "walked": sorted(self.walked),
                    "at": at and [at.space, str(at.kind), at.start],
                }
            )
        )


def _position(value: object) -> Position | None:
    match value:
        case [str(space), str(kind), str(start)] if kind in {*ContentKind}:
            return Position(space, ContentKind(kind), start)
        case _:
            return None
