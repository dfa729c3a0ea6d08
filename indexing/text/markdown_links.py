"""Inline links of Markdown, [label](target), as CommonMark 0.31 defines them.

A target may also be a placeholder of a website generator, with blanks in it: `{% page "/travel/" %}`.
"""

import regex

TARGET_IN_BRACKETS = (
    r"\((?:<(?P<target>[^<>\n]*+)>"
    r"|(?P<target>(?:\{\{[^{}\n]*+\}\}|\{[^{}\n]*+\}|\([^()\s]*+\)|[^()\s{}<])*+))"
    r'(?:[ ]++"[^"\n]*+")?+\)'
)
"""The part of a `regex` pattern that matches a target, perhaps with a title."""

_AFTER_LABEL = regex.compile(rf"(?<=\]){TARGET_IN_BRACKETS}")
_UNBROKEN = regex.compile(rf"!?\[[^\[\]\n]*+\]{TARGET_IN_BRACKETS}\S*+|https?://\S++")
_LINK = regex.compile(rf"!?\[(?P<label>[^\[\]]*+)\]{TARGET_IN_BRACKETS}")


def strip_link_targets(text: str) -> str:
    """Remove the targets; labels keep their brackets."""
    return _AFTER_LABEL.sub("", text) if "](" in text else text


def measure_unbreakable(text: str, start: int, end: int) -> int:
    """Return the length of the link or bare address that begins at `start`, with what is attached to it; else 0."""
    found = _UNBROKEN.match(text, start, end)
    return found.end() - start if found else 0


def strip_links(text: str) -> str:
    """Replace each link by its label, and each image by its description."""
    return _LINK.sub(r"\g<label>", text) if "](" in text else text
