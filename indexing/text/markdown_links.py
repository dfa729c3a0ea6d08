"""Links of Markdown in a text: [label](target), as CommonMark 0.31 has them inline.

A target may also hold what the generator of a website fills in, with blanks in it: `{% page "/travel/" %}`.
"""

import regex

TARGET_IN_BRACKETS = (
    r"\((?:<(?P<target>[^<>\n]*+)>"
    r"|(?P<target>(?:\{\{[^{}\n]*+\}\}|\{[^{}\n]*+\}|\([^()\s]*+\)|[^()\s{}<])*+))"
    r'(?:[ ]++"[^"\n]*+")?+\)'
)
"""Of a pattern of `regex`: what follows a label, perhaps with a title."""

_AFTER_LABEL = regex.compile(rf"(?<=\]){TARGET_IN_BRACKETS}")
_UNBROKEN = regex.compile(rf"!?\[[^\[\]\n]*+\]{TARGET_IN_BRACKETS}\S*+|https?://\S++")
_LINK = regex.compile(rf"!?\[(?P<label>[^\[\]]*+)\]{TARGET_IN_BRACKETS}")


def without_targets(text: str) -> str:
    """The labels still in their brackets."""
    return _AFTER_LABEL.sub("", text) if "](" in text else text


def unbroken_at(text: str, start: int, end: int) -> int:
    """Characters of the link, or the bare address, that begins at `start`; 0 where there is none."""
    found = _UNBROKEN.match(text, start, end)
    return found.end() - start if found else 0


def labels_alone(text: str) -> str:
    """As one reads it aloud. An image is its description."""
    return _LINK.sub(r"\g<label>", text) if "](" in text else text
