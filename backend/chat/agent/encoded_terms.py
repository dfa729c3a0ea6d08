"""Read words of a query that may be another text in disguise: base64, hexadecimal, percent signs, or written backwards.

Nobody searches for such words. A model writes them where a page tells it to hide what it has read.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from urllib.parse import unquote_plus

SHORTEST = 4
"""Characters of a word that is decoded."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{4,}={0,2}")
_HEXADECIMAL = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2}[:-]?){2,})")


def decode_word(word: str) -> Iterator[str]:
    """Yield the texts that a word may stand for."""
    if len(word) < SHORTEST:
        return
    yield word[::-1]
    if (unquoted := unquote_plus(word)) != word:
        yield unquoted
    if found := _HEXADECIMAL.fullmatch(word):
        yield from _to_text(bytes.fromhex(re.sub("[:-]", "", found[1])))
    if _BASE64.fullmatch(word):
        bare = word.rstrip("=").replace("-", "+").replace("_", "/")
        padded = bare + "=" * (-len(bare) % 4)
        try:
            yield from _to_text(base64.b64decode(padded))
        except binascii.Error:
            return


def _to_text(content: bytes) -> Iterator[str]:
    try:
        yield content.decode()
    except UnicodeDecodeError:
        return
