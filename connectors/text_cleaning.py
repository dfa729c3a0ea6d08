"""Clean text and times that come from outside, so that they can be stored and shown."""

import re
from datetime import UTC, datetime

_LONGEST_TITLE = 300
# Tags, which spell ASCII without being shown, and characters without width; joiners are part of words and signs.
_INVISIBLE = re.compile("[\U000e0000-\U000e007f\u00ad\u200b\u2060-\u2064\ufeff]")
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u206f\ud800-\udfff\ufff9-\ufffb"
"""All but tab and line feed, and what reorders the text around it, for a set in a pattern. The marks U+200E and U+200F are
not among them: they are part of how Hebrew and Arabic are written, and reach one place only."""
_CONTROLS = re.compile(f"[{CONTROLS}]")
REPLACEMENT = "\ufffd"


def replace_controls(text: str) -> str:
    """Return `text` with its control characters shown as U+FFFD; each character stays at its place."""
    return _CONTROLS.sub(REPLACEMENT, text)


def replace_unstorable(text: str) -> str:
    """Replace NUL and lone surrogates, which UTF-8 or a database cannot hold, by U+FFFD one for one."""
    return _NOT_STORABLE.sub(REPLACEMENT, text)


def remove_invisible(text: str) -> str:
    """Remove characters that no person sees and that programs read: text for models alone may be hidden in them."""
    return _INVISIBLE.sub("", text)


def to_one_line(text: str) -> str:
    return " ".join(replace_unstorable(text).split())


def shorten_title(text: str) -> str:
    """Cut a title that is too long for a page or a prompt."""
    return text if len(text) <= _LONGEST_TITLE else f"{text[:_LONGEST_TITLE]}…"


def to_utc(moment: datetime | None) -> datetime | None:
    """Convert a time to UTC. One without a zone counts as UTC; one that UTC cannot express is None."""
    if moment is None:
        return None
    if moment.utcoffset() is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


def parse_time(text: str) -> datetime | None:
    """Parse an ISO 8601 text and return the time in UTC, or None if it is not one."""
    try:
        return to_utc(datetime.fromisoformat(text.strip()))
    except ValueError:
        return None
