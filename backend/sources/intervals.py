"""How often a source is read, as people write it and as they read it."""

import re
from datetime import timedelta

SHORTEST = timedelta(minutes=1)
LONGEST = timedelta(days=30)
NEVER = timedelta(0)

_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_WRITTEN = re.compile(r"([1-9]\d{0,8})\s*([smhd])", re.IGNORECASE)


def interval(text: str) -> timedelta | None:
    """Such as `90s`, `15m`, `6h` or `1d`; `never`; or `usual`, which is None.

    Raises:
        ValueError: it is none of these, or too short or too long.
    """
    word = text.strip().lower()
    if word in {"never", "usual"}:
        return NEVER if word == "never" else None
    match = _WRITTEN.fullmatch(word)
    if match is None:
        raise ValueError(f"{text!r} is no interval: write such as 90s, 15m, 6h, 1d, never or usual")
    every = timedelta(**{f"{_UNITS[match[2]]}s": int(match[1])})
    check(every)
    return every


def check(every: timedelta) -> None:
    """Raises ValueError: it is too short, or too long."""
    if every != NEVER and not SHORTEST <= every <= LONGEST:
        raise ValueError("an interval lasts a minute to 30 days, or is never")


def spoken(every: timedelta) -> str:
    """Such as `every 15 minutes`, in the largest unit that is whole; `never by itself`."""
    if every == NEVER:
        return "never by itself"
    seconds = int(every.total_seconds())
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if not seconds % size:
            count = seconds // size
            return f"every {name}" if count == 1 else f"every {count} {name}s"
    return f"every {seconds} seconds"
