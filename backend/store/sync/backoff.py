"""The wait before a failed attempt is repeated."""

from collections.abc import Callable
from datetime import timedelta


def exponential_backoff(first: timedelta, longest: timedelta) -> Callable[[int], timedelta]:
    """Return a function from the number of failed tries to the wait: `first`, doubled each time, up to `longest`."""

    def after(tries: int) -> timedelta:
        doubled: int = 1 << min(max(tries - 1, 0), 20)
        return min(first * doubled, longest)

    return after
