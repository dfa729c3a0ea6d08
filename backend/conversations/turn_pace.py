"""How fast a turn goes on: in short steps, between which searches go first.

The text of a conversation's turn is sent in portions, so nobody waits for a single word: what the model writes during a pause is
read at once. To wait for each word costs several times what it takes to process it.
"""

import time
from collections.abc import Callable
from typing import TypeAlias

YieldToSearches: TypeAlias = Callable[[float], object]
"""Waits while something more urgent is under way; where that never ends, one turn goes on every so many seconds."""
STEP = 0.02
"""Seconds that a turn goes on before it pauses again."""
LONG_STEP = 0.1
"""Seconds after which it also pauses in the midst of a step. Each pause may last as long as those of all other turns together, and
a search of the turn has its own time limit."""
PAUSE = 0.15
"""Seconds between two steps that write text; shorter than the time between two portions."""
BETWEEN_TURNS = 0.05
"""Seconds after which one of the turns that wait goes on, however much is searched."""


class TurnPace:
    """Of one turn, in its thread."""

    def __init__(self, yield_to_searches: YieldToSearches) -> None:
        self._yield_to_searches = yield_to_searches
        self._began = time.monotonic()
        self._has_text = False

    def pause(self) -> None:
        """Pause after a piece of text, unless it is the first or the last pause was a moment ago."""
        if self._is_due():
            if self._has_text:
                time.sleep(PAUSE)
            self._wait()
        self._has_text = True

    def yield_to_searches(self) -> None:
        """Wait while searches are under way, unless it waited a moment ago."""
        if self._is_due():
            self._wait()

    def yield_within_step(self) -> None:
        """Wait as `yield_to_searches` does, in the midst of a long step."""
        if time.monotonic() - self._began >= LONG_STEP:
            self._wait()

    def _is_due(self) -> bool:
        return time.monotonic() - self._began >= STEP

    def _wait(self) -> None:
        self._yield_to_searches(BETWEEN_TURNS)
        self._began = time.monotonic()


def yield_to_nobody(seconds: float) -> None:
    """Do nothing, where nobody searches in the process."""
