"""Bytes to text, whatever the encoding."""

import codecs
import re

from charset_normalizer import from_bytes

from connectors.extraction.result import ExtractionError
from connectors.text_cleaning import replace_unstorable

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What files were saved in before UTF-8. The detector is much surer among these than among all
# that Python knows.
_LEGACY = [
    *("cp932", "euc_jp", "iso2022_jp", "gb18030", "big5", "cp949", "cp1252", "cp1251", "koi8_r"),
    *("cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874"),
]
_LIKE_WESTERN = {"cp1250", "cp1254", "cp1257"}
# Browsers read these labels as the larger encoding, because files do not keep to the smaller.
_LARGER = {
    **dict.fromkeys(("ascii", "iso8859-1", "latin_1", "latin-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift_jis_2004"), "cp932"),
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
}
# Encodings whose bytes are all ASCII, so that they look like it.
_SEVEN_BIT = {"iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_kr", "hz"}
# One of these without its mark is told by its zero bytes or not meant.
_WIDE = {"utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"}
_SAMPLE = 100_000
# Signs that stand inside a word only where a letter of another encoding was taken for them.
_SYMBOL_IN_WORD = re.compile(
    "[a-z\xc0-\xff][\xa1-\xa9\xac\xae-\xb3\xb5\xb6\xb8\xb9\xbc-\xbf][a-z\xc0-\xff]", re.IGNORECASE
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_FEW_CONTROL = 3
_MOST_CONTROL = 0.01
_MOST_BROKEN = 0.02


def decode(data: bytes, declared: str | None = None) -> str:
    """The text that `data` holds, with `\\n` between lines and without a byte order mark.

    `declared` is what the file or its sender says; it is believed where it fits. NUL and lone
    surrogates become U+FFFD, one for one.

    Raises:
        ExtractionError: no encoding makes text of it.
    """
    text = data.decode(_encoding(data, declared), errors="replace")
    return replace_unstorable(text).replace("\r\n", "\n").replace("\r", "\n")


def _encoding(data: bytes, declared: str | None) -> str:
    sample = _sample(data)
    stated = _stated(declared)
    if wide := _marked(data) or _wide(data[:_SAMPLE]):
        return wide
    if not looks_like_text(sample):
        raise ExtractionError("it is not text: it holds control characters")
    if data.isascii() and b"\x1b$" in data:
        return stated if stated in _SEVEN_BIT else "iso2022_jp"
    if _fits(data, "utf-8"):
        return stated if stated in _SEVEN_BIT else "utf-8"
    if stated is not None and stated not in _WIDE:
        return stated
    return "utf-8" if _is_broken_utf8(sample) else _legacy(sample)


def looks_like_text(head: bytes) -> bool:
    """Whether these first bytes of a file are text rather than a format of its own."""
    if _marked(head) or _wide(head):
        return True
    return len(_CONTROL.findall(head)) <= max(_FEW_CONTROL, len(head) * _MOST_CONTROL)


def is_utf16_or_utf32(data: bytes) -> bool:
    """Whether this is UTF-16 or UTF-32, which ASCII formats such as e-mail never are by themselves."""
    return (_marked(data) or _wide(data[:_SAMPLE]) or "utf-8-sig") != "utf-8-sig"


def _marked(data: bytes) -> str | None:
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)


def _fits(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _stated(declared: str | None) -> str | None:
    """The encoding that a declaration means, if there is one that makes text of bytes."""
    try:
        name = codecs.lookup(declared or "").name
        b"a".decode(name)
    except (LookupError, ValueError):
        return None
    return _LARGER.get(name, name)


def _wide(sample: bytes) -> str | None:
    """UTF-16 without its mark: in text with Latin letters or spaces every other byte is often 0."""
    pairs = len(sample) // 2
    if len(sample) % 2 or sample.count(0) < _FEW_CONTROL:
        return None
    low, high = sample[1::2].count(0) / pairs, sample[::2].count(0) / pairs
    if low > 0.3 > 0.05 > high:
        return "utf-16-le"
    return "utf-16-be" if high > 0.3 > 0.05 > low else None


def _is_broken_utf8(sample: bytes) -> bool:
    """UTF-8 in which a few bytes are broken, as when a file was cut or joined."""
    text = sample.decode("utf-8", errors="replace")
    beyond_ascii = sum(not character.isascii() for character in text)
    return text.count("\ufffd") <= max(1, _MOST_BROKEN * beyond_ascii) < beyond_ascii - 2


def _legacy(sample: bytes) -> str:
    best = from_bytes(sample, cp_isolation=_LEGACY).best()
    if best is None:
        return "cp1252"
    if best.encoding in _LIKE_WESTERN and _fits(sample, "cp1252"):
        is_other = _SYMBOL_IN_WORD.search(sample.decode("cp1252"))
        return best.encoding if is_other else "cp1252"
    return best.encoding


def _sample(data: bytes) -> bytes:
    """The beginning up to the end of a line: a cut inside a character would mislead."""
    if len(data) <= _SAMPLE:
        return data
    return data[: data.rfind(b"\n", 0, _SAMPLE) + 1] or data[:_SAMPLE]
