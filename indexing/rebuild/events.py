"""What a rebuild of the index tells, and how fast it may go."""

from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from indexing.rebuild.standstill import Waiting


@dataclass(frozen=True, slots=True)
class Pace:
    """Chunks a second, on average, that a rebuild may take; `None` for as many as it can."""

    most: float | None = None

    @property
    def at_once(self) -> float:
        """Chunks of one batch: a second's worth, so that the machine is not busy for long at a time."""
        return inf if self.most is None else max(1.0, self.most)

    def pause(self, chunks: int, seconds: float) -> float:
        """Seconds to wait after so many chunks in so many seconds."""
        return 0.0 if self.most is None else max(0.0, chunks / self.most - seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """How far the new index version is."""

    documents: int
    """That it holds as they are now, of `total`."""
    total: int
    chunks: int
    """Written in this run."""
    rate: float
    """Chunks a second in this run."""
    seconds_left: float | None
    """At the pace so far; `None` as long as nothing can be said."""
    item: str | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """A document that the new index version cannot have."""

    document_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """The new index version is the active one."""

    documents: int
    """Cut and embedded anew in this run."""
    chunks: int
    deleted: int
    amended: int
    missing: tuple[Missing, ...]
    seconds: float


Rebuilding: TypeAlias = Building | Waiting | Rebuilt
