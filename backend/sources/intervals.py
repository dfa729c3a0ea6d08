"""How often a source is synced: intervals parsed from text and formatted as text."""

import re
from datetime import timedelta

SHORTEST = timedelta(minutes=1)
LONGEST = timedelta(days=30)
NEVER = timedelta(0)

_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_PATTERN = re.compile(r"([1-9]\d{0,8})\s*([smhd])", re.IGNORECASE)


def parse_interval(text: str) -> timedelta | None:
    """Parse `90s`, `15m`, `6h`, `1d` and the like, `never`, or `usual`, which is None.

    Raises:
        ValueError: it is none of these, or out of bounds.
    """
    word = text.strip().lower()
    if word in {"never", "usual"}:
        return NEVER if word == "never" else None
    match = _PATTERN.fullmatch(word)
    if match is None:
        raise ValueError(f"{text!r} is not an interval: use 90s, 15m, 6h, 1d, never or usual")
    every = timedelta(**{f"{_UNITS[match[2]]}s": int(match[1])})
    check_interval(every)
    return every


def check_interval(every: timedelta) -> None:
    """Raise ValueError if an interval is too short or too long."""
    if every != NEVER and not SHORTEST <= every <= LONGEST:
        raise ValueError("an interval must be between a minute and 30 days, or never")


def format_interval(every: timedelta) -> str:
    """Return such as `every 15 minutes`, in the largest whole unit; `never` for zero."""
    if every == NEVER:
        return "never"
    seconds = int(every.total_seconds())
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if not seconds % size:
            count = seconds // size
            return f"every {name}" if count == 1 else f"every {count} {name}s"
    return f"every {seconds} seconds"
