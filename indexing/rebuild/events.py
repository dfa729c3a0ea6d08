"""Events and limits of a rebuild or a copy of the index, and the pause of all syncs at its end."""

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from connectors.errors import TemporarilyUnavailableError

RETRY_SECONDS = 2.0
"""Between two attempts to pause all syncs."""

KeepAlive: TypeAlias = Callable[[], None]
"""Called regularly within the pause to extend it.

Raises TemporarilyUnavailableError: the pause is over."""

SyncPause: TypeAlias = Callable[[], AbstractContextManager[KeepAlive]]
"""Opens a block in which no source is synced, so that what is compared does not change meanwhile.

Entering the block raises TemporarilyUnavailableError while a source is being synced."""


@dataclass(frozen=True, slots=True)
class WaitingForSync:
    """A sync must end before the work can go on."""

    reason: str


def enter_sync_pause(
    stack: ExitStack, pause: SyncPause
) -> Generator[WaitingForSync, None, KeepAlive]:
    """Enter the block on `stack` as soon as no source is synced; closing the generator gives up."""
    while True:
        try:
            return stack.enter_context(pause())
        except TemporarilyUnavailableError as error:
            waiting = WaitingForSync(str(error))
        yield waiting
        time.sleep(RETRY_SECONDS)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The average number of chunks per second that a rebuild may index; `None`: unlimited."""

    chunks_per_second: float | None = None

    @property
    def batch_chunks(self) -> float:
        """Chunks of one batch: those of a second, so that the machine is never busy for long."""
        limit = self.chunks_per_second
        return inf if limit is None else max(1.0, limit)

    def seconds_to_wait(self, chunks: int, seconds: float) -> float:
        """Return the pause that is due after so many chunks in so many seconds."""
        limit = self.chunks_per_second
        return 0.0 if limit is None else max(0.0, chunks / limit - seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildProgress:
    documents: int
    """Documents that are up to date in the new index version, of `total`."""
    total: int
    chunks: int
    """Written in this run."""
    rate: float
    """Chunks per second in this run."""
    seconds_left: float | None
    """At the rate so far; `None` while it cannot be estimated."""
    item: str | None = None


@dataclass(frozen=True, slots=True)
class MissingDocument:
    """A document that cannot be indexed in the new index version."""

    document_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildResult:
    """The new index version is active."""

    documents: int
    """Chunked and embedded again in this run."""
    chunks: int
    deleted: int
    amended: int
    missing: tuple[MissingDocument, ...]
    seconds: float
    copied: int = 0
    """Documents whose chunks and vectors were taken over from the former version."""


RebuildEvent: TypeAlias = RebuildProgress | WaitingForSync | RebuildResult
