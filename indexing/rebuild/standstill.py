"""A moment in which no source is synced: what is compared then stays as it was compared."""

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TypeAlias

from connectors.errors import TemporarilyUnavailableError

PATIENCE = 2.0
"""Seconds between two tries to bring the sources to a standstill."""

GoOn: TypeAlias = Callable[[], None]
"""To be called now and then within the block, to say that it goes on. Raises TemporarilyUnavailableError: it is over."""

Standstill: TypeAlias = Callable[[], AbstractContextManager[GoOn]]
"""The block. Entering it raises TemporarilyUnavailableError as long as a source is being synced, and holds none of them then."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A source is being synced; that is waited for."""

    reason: str


def entered(stack: ExitStack, standstill: Standstill) -> Generator[Waiting, None, GoOn]:
    """Enter the block on `stack` as soon as that is possible; closing the generator gives it up."""
    while True:
        try:
            return stack.enter_context(standstill())
        except TemporarilyUnavailableError as error:
            waiting = Waiting(str(error))
        yield waiting
        time.sleep(PATIENCE)
