"""Make texts of documents and of models safe to show: no control character takes effect."""

import re

REPLACEMENT = "\ufffd"

# All but tab and line feed; and those that reorder the text around them. The marks U+200E and
# U+200F stay: they are part of how Hebrew and Arabic are written, and reach one place only.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u206f\ud800-\udfff\ufff9-\ufffb]"
)


def replace_controls(text: str) -> str:
    """Return `text` with its control characters shown as U+FFFD; each character stays at its place."""
    return _CONTROLS.sub(REPLACEMENT, text)


def shorten(text: str, length: int) -> str:
    """Return the text on one line, cut to `length` characters."""
    line = " ".join(replace_controls(text[: 4 * length]).split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"
