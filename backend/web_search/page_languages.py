"""The language of a page: as it declares, unless its text is plainly in another."""

import re
from collections import Counter

import regex

from indexing.text.analysis import guess_languages
from indexing.text.languages import LANGUAGES

_SAMPLE = 5_000
"""Characters; function words of a language are in the first paragraphs."""
_BY_SCRIPT = {"Hiragana": "ja", "Katakana": "ja", "Hangul": "ko", "Han": "zh", "Thai": "th", "Hebrew": "he", "Greek": "el", "Georgian": "ka"}  # fmt: skip
"""Scripts that are enough to tell the language."""
_SHARED = ("Latin", "Cyrillic", "Arabic", "Devanagari", "Armenian", "Tamil")
_SCRIPTS = regex.compile("|".join(rf"(?P<{name}>\p{{{name}}})" for name in (*_BY_SCRIPT, *_SHARED)))
_LEAST_KANA = 0.05
"""Japanese text has more; Chinese text has at most a name in it."""
_DECLARED = re.compile(r"([a-z]{2})(?:[-_].*)?", re.IGNORECASE)
_TEMPLATE = "en"
"""Declared by many templates, whatever is written in them."""


def find_language(declared: str | None, text: str) -> str | None:
    """Return the language as ISO 639-1, or None where it cannot be recognized.

    Args:
        declared: As the page or the server states it, such as `de-AT`.
    """
    found = _DECLARED.fullmatch((declared or "").strip())
    stated = found[1].lower() if found else None
    seen = _detect(text[:_SAMPLE])
    if stated is None or (seen is not None and _contradicts(stated, seen)):
        return seen
    return stated


def _contradicts(stated: str, seen: str) -> bool:
    return stated == _TEMPLATE or _script_of(stated) != _script_of(seen)


def _script_of(code: str) -> str:
    if code in _BY_SCRIPT.values():
        return code
    return LANGUAGES[code].script if code in LANGUAGES else "Latin"


def _detect(text: str) -> str | None:
    counts = Counter(str(match.lastgroup) for match in _SCRIPTS.finditer(text))
    if not counts:
        return None
    kana = counts["Hiragana"] + counts["Katakana"]
    if kana > _LEAST_KANA * (kana + counts["Han"]):
        counts["Hiragana"] += counts.pop("Han", 0)
    most = counts.most_common(1)[0][0]
    if most in _BY_SCRIPT:
        return _BY_SCRIPT[most]
    return {str(script): code for script, code in guess_languages(text).items()}.get(most)
