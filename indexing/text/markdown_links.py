"""Inline links of Markdown, [label](target), as CommonMark 0.31 defines them; and text that is to be none.

A target may also be a placeholder of a website generator, with blanks in it: `{% page "/travel/" %}`.
"""

from urllib.parse import quote

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

_SCRIPT_SCHEMES = ("javascript:", "data:", "vbscript:")
_UNSAFE = regex.compile(r"[\s()<>\[\]|\\\"`^{}\x00-\x1f\x7f]")
_INDENTATION = regex.compile(r"^[ \t]+", regex.MULTILINE)
_MARKUP = regex.compile(
    r"[\\`*_\[\]<~]"
    r"|&(?=\#?\w{1,32};)"  # a character reference
    r"|(?<=(?i:https?|ftp|mailto|xmpp)):|(?<=(?i:www))\.|(?<=\w)@(?=\w)"  # a bare address
    r"|^[#>+=-]|(?<=^\d{1,9})[.)]",  # a heading, a quotation, a list or a line
    regex.MULTILINE,
)


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


def safe_link(link: str) -> str:
    """Escape a link for Markdown, tables included; empty for one that would run a script."""
    escaped = _UNSAFE.sub(lambda found: quote(found.group(), safe=""), link.strip())
    return "" if escaped.lower().startswith(_SCRIPT_SCHEMES) else escaped


def escape_markdown(text: str) -> str:
    """Escape a text so that Markdown shows it as it is: no link, image, emphasis or code, and no list.

    Bare addresses, of which many renderers make links, are escaped too. Indentation, which makes code of a
    paragraph and is not shown in one, is removed.
    """
    return _MARKUP.sub(r"\\\g<0>", _INDENTATION.sub("", text))
