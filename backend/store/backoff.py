"""How long to wait before what came to nothing is tried again."""

from collections.abc import Callable
from datetime import timedelta


def exponential_backoff(first: timedelta, longest: timedelta) -> Callable[[int], timedelta]:
    """From the number of tries in vain: `first`, doubled with each further one, at most `longest`."""

    def after(tries: int) -> timedelta:
        doubled: int = 1 << min(max(tries - 1, 0), 20)
        return min(first * doubled, longest)

    return after
