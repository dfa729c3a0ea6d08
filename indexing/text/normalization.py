"""Forms of texts and words: folded and stemmed for comparison, singular or plural for people.

Defines the character classes of words as well.
"""

import re
import threading
import unicodedata
from collections.abc import Iterable

import regex
import Stemmer  # type: ignore[import-not-found]

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
_UNDECOMPOSED = (
    ("ø", "o"), ("đ", "d"), ("ł", "l"), ("ħ", "h"), ("ı", "i"), ("ŋ", "n"), ("ŧ", "t"), ("ð", "d"), ("þ", "th"),
    ("æ", "ae"), ("œ", "oe"),
)  # fmt: skip
"""Latin letters that Unicode does not decompose."""
_VARIANTS = (("‘", "'"), ("’", "'"), ("ʼ", "'"), ("‐", "-"), ("−", "-"))
"""Variants of apostrophe and hyphen."""
_DOTTED_I = "i\u0307"
"""What case folding makes of the capital of the Turkish i."""

_stemmers = threading.local()

_UNSTORABLE = re.compile("[\\0\ud800-\udfff]")


INVISIBLE = (
    r"\s\0-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
)
"""White space, and other characters of the basic plane that show nothing, for a set in a pattern."""
_VISIBLE = re.compile(rf"[^{INVISIBLE}\U0001d173-\U0001d17a\U000e0000-\U000e0fff]")


def is_visible(text: str) -> bool:
    """Return whether a reader sees anything of a text."""
    return _VISIBLE.search(text) is not None


def is_storable(text: str) -> bool:
    """Return whether `text` is Unicode without NUL. Half of a surrogate pair is not Unicode."""
    return _UNSTORABLE.search(text) is None


def normalize(text: str) -> str:
    """Make texts comparable that differ in case, width, or in how Unicode writes them.

    Half surrogates, which no index can store, are removed.
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _decompose(text)).replace(_DOTTED_I, "i")


def fold(text: str) -> str:
    """Normalize a text, and ignore the diacritics of Latin letters too."""
    if text.isascii():
        return text.lower()
    plain = _LATIN_MARKS.sub("", _decompose(text), concurrent=False)
    return unicodedata.normalize("NFC", _replace_all(plain, _UNDECOMPOSED))


def _decompose(text: str) -> str:
    bare = _DROPPED.sub("", text, concurrent=False)
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", bare).casefold())
    return _replace_all(plain, _VARIANTS)


def _replace_all(text: str, pairs: Iterable[tuple[str, str]]) -> str:
    # A tenth of the time of `str.translate`.
    for old, new in pairs:
        text = text.replace(old, new)
    return text


def stem(word: str, algorithm: str | None) -> str:
    """Return the stem of a word in lower case, by a Snowball stemmer; without an algorithm, the word."""
    if algorithm is None:
        return word
    # A stemmer keeps state in C and must not be shared by threads.
    stemmers: dict[str, Stemmer.Stemmer] = _stemmers.__dict__
    if algorithm not in stemmers:
        stemmers[algorithm] = Stemmer.Stemmer(algorithm)
    found: str = stemmers[algorithm].stemWord(word)
    return found


def pluralize(number: int, noun: str, plural: str | None = None) -> str:
    """Count things in words: `1 document`, `2 documents`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
