"""Fold texts for comparison, and define the character classes of words."""

import re
import unicodedata

import regex

SPACELESS = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"\u30FC\u3099\u309A"
)
LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}]--[{SPACELESS}]]"
JOINER = r"(?:::|[-._:@+])"

_DROPPED = regex.compile(
    r"[\u00AD\u200C\u200D\u2060\uFEFF\uD800-\uDFFF\uFE00-\uFE0F\U000E0100-\U000E01EF™®©℠]+"
)
_LATIN_MARKS = regex.compile(r"(?<=\p{Latin})\p{Mn}++")
_UNDECOMPOSED = str.maketrans(
    {
        "ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ı": "i", "ŋ": "n", "ŧ": "t", "ð": "d", "þ": "th",
        "æ": "ae", "œ": "oe", "‘": "'", "’": "'", "ʼ": "'", "‐": "-", "−": "-",
    }
)  # fmt: skip
"""Latin letters that Unicode does not decompose, and variants of apostrophe and hyphen."""

_UNSTORABLE = re.compile("[\\0\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Whether `text` is Unicode without NUL. Half of a surrogate pair is not Unicode."""
    return _UNSTORABLE.search(text) is None


def fold(text: str) -> str:
    """Fold a text for comparison: ignore case, width, and the diacritics of Latin letters.

    Half surrogates, which no index can store, are removed.
    """
    if text.isascii():
        return text.lower()
    bare = _DROPPED.sub("", text, concurrent=False)
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", bare).casefold())
    return unicodedata.normalize(
        "NFC", _LATIN_MARKS.sub("", plain, concurrent=False).translate(_UNDECOMPOSED)
    )
