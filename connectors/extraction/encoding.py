"""Detect the encoding of text files and decode them."""

import codecs
import re

from charset_normalizer import from_bytes

from connectors.extraction.result import ExtractionError
from connectors.text_cleaning import replace_unstorable

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Common before UTF-8. The detector is far more reliable among these than among all that Python supports.
_LEGACY = [
    *("cp932", "euc_jp", "iso2022_jp", "gb18030", "big5", "cp949", "cp1252", "cp1251", "koi8_r"),
    *("cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp874"),
]
_SIMILAR_TO_WESTERN = {"cp1250", "cp1254", "cp1257"}
# As in browsers, because files labelled with the smaller encoding use characters of the larger.
_SUPERSETS = {
    **dict.fromkeys(("ascii", "iso8859-1", "latin_1", "latin-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift_jis_2004"), "cp932"),
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
}
# Encodings with ASCII bytes only.
_SEVEN_BIT = {"iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_kr", "hz"}
# Without a byte order mark these are recognized by zero bytes only; a declaration is not believed.
_WIDE = {"utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"}
_SAMPLE = 100_000
# A symbol inside a word is a letter of another encoding, decoded wrongly.
_SYMBOL_IN_WORD = re.compile(
    "[a-z\xc0-\xff][\xa1-\xa9\xac\xae-\xb3\xb5\xb6\xb8\xb9\xbc-\xbf][a-z\xc0-\xff]", re.IGNORECASE
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_FEW_CONTROL = 3
_MOST_CONTROL = 0.01
_MOST_BROKEN = 0.02


def decode(data: bytes, declared: str | None = None) -> str:
    """Decode text, with `\\n` between lines and without a byte order mark.

    `declared` is the encoding stated by the file or its sender; it is used if it fits. NUL and lone
    surrogates become U+FFFD, one for one.

    Raises:
        ExtractionError: the data is not text.
    """
    text = data.decode(_detect_encoding(data, declared), errors="replace")
    return replace_unstorable(text).replace("\r\n", "\n").replace("\r", "\n")


def _detect_encoding(data: bytes, declared: str | None) -> str:
    sample = _take_sample(data)
    declared_encoding = _parse_declared(declared)
    if unicode_encoding := _detect_mark(data) or _detect_utf16(data[:_SAMPLE]):
        return unicode_encoding
    if not looks_like_text(sample):
        raise ExtractionError("it is not text: it contains control characters")
    if data.isascii() and b"\x1b$" in data:
        return declared_encoding if declared_encoding in _SEVEN_BIT else "iso2022_jp"
    if _can_decode(data, "utf-8"):
        return declared_encoding if declared_encoding in _SEVEN_BIT else "utf-8"
    if declared_encoding is not None and declared_encoding not in _WIDE:
        return declared_encoding
    return "utf-8" if _is_broken_utf8(sample) else _detect_legacy(sample)


def looks_like_text(head: bytes) -> bool:
    """Return whether a file that starts with these bytes is text rather than binary."""
    if _detect_mark(head) or _detect_utf16(head):
        return True
    return len(_CONTROL.findall(head)) <= max(_FEW_CONTROL, len(head) * _MOST_CONTROL)


def is_utf16_or_utf32(data: bytes) -> bool:
    """Return whether the data is UTF-16 or UTF-32."""
    return (_detect_mark(data) or _detect_utf16(data[:_SAMPLE]) or "utf-8-sig") != "utf-8-sig"


def _detect_mark(data: bytes) -> str | None:
    return next((encoding for mark, encoding in _BYTE_ORDER_MARKS if data.startswith(mark)), None)


def _can_decode(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _parse_declared(declared: str | None) -> str | None:
    """Return the declared encoding if Python knows it as one of text, in which bytes that it does not have can be replaced."""
    try:
        name = codecs.lookup(declared or "").name
        b"a\xff".decode(name, "replace")
    except (LookupError, ValueError):
        return None
    return _SUPERSETS.get(name, name)


def _detect_utf16(sample: bytes) -> str | None:
    """Detect UTF-16 without a mark: with Latin letters or spaces every other byte is often 0."""
    pairs = len(sample) // 2
    if len(sample) % 2 or sample.count(0) < _FEW_CONTROL:
        return None
    low, high = sample[1::2].count(0) / pairs, sample[::2].count(0) / pairs
    if low > 0.3 > 0.05 > high:
        return "utf-16-le"
    return "utf-16-be" if high > 0.3 > 0.05 > low else None


def _is_broken_utf8(sample: bytes) -> bool:
    """Return whether this is UTF-8 with a few invalid bytes, as after a file was cut or joined."""
    text = sample.decode("utf-8", errors="replace")
    beyond_ascii = sum(not character.isascii() for character in text)
    return text.count("\ufffd") <= max(1, _MOST_BROKEN * beyond_ascii) < beyond_ascii - 2


def _detect_legacy(sample: bytes) -> str:
    best = from_bytes(sample, cp_isolation=_LEGACY).best()
    if best is None:
        return "cp1252"
    if best.encoding in _SIMILAR_TO_WESTERN and _can_decode(sample, "cp1252"):
        is_other = _SYMBOL_IN_WORD.search(sample.decode("cp1252"))
        return best.encoding if is_other else "cp1252"
    return best.encoding


def _take_sample(data: bytes) -> bytes:
    """Return the beginning up to the end of a line: half a character would mislead the detector."""
    if len(data) <= _SAMPLE:
        return data
    return data[: data.rfind(b"\n", 0, _SAMPLE) + 1] or data[:_SAMPLE]
