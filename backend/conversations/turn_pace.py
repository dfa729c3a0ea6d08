"""How fast a turn writes on: in small steps with pauses between them, in which searches go first."""

import time
from collections.abc import Callable
from typing import TypeAlias

GiveWay: TypeAlias = Callable[[float], object]
"""Waits while something more urgent is under way, but no longer than so many seconds."""
WORK = 0.02
"""Seconds that a turn goes on after a pause before it pauses again."""
PAUSE = 0.15
"""Seconds of a pause. What a model writes meanwhile is then read at once; its readers see it in portions, seldomer still."""
LONGEST_WAIT = 0.2
"""Seconds that a turn gives way after a pause, however much is searched."""


class TurnPace:
    """Of one turn, in its thread."""

    def __init__(self, give_way: GiveWay) -> None:
        self._give_way = give_way
        self._began = time.monotonic()

    def pause(self) -> None:
        """Pause after a piece of text, unless the last pause was a moment ago."""
        if time.monotonic() - self._began >= WORK:
            time.sleep(PAUSE)
            self.give_way()

    def give_way(self) -> None:
        """Wait while searches run, before a step that takes much of the processor."""
        self._give_way(LONGEST_WAIT)
        self._began = time.monotonic()


def give_no_way(most_seconds: float) -> None:
    """Where nothing else is done in the process."""
