"""Bytes to text, whatever the encoding."""

import codecs
import re

from charset_normalizer import from_bytes

from connectors.extraction.extracted import CannotRead, safe

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
    **dict.fromkeys(("gb2312", "gbk", "hz"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift_jis_2004"), "cp932"),
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
}
_SAMPLE = 100_000
_SYMBOL_IN_WORD = re.compile("[a-z][\xa1-\xa9\xab-\xb6\xb8\xb9\xbb-\xbf][a-z]", re.IGNORECASE)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL = 0.01
_MOST_BROKEN = 0.02


def decode(data: bytes, declared: str | None = None) -> str:
    """The text that `data` holds, with `\\n` between lines and without a byte order mark.

    `declared` is what the file or its sender says; it is believed where it fits. NUL and lone
    surrogates become U+FFFD, one for one.

    Raises:
        CannotRead: no encoding makes text of it.
    """
    text = _marked(data)
    if text is None:
        text = _declared(data, declared) if data.isascii() else _strictly(data, "utf-8")
    if text is None:
        text = _declared(data, declared)
    if text is None:
        text = _guessed(data)
    return safe(text).replace("\r\n", "\n").replace("\r", "\n")


def looks_like_text(head: bytes) -> bool:
    """Whether these first bytes of a file are text rather than a format of its own."""
    if any(head.startswith(mark) for mark, _ in _MARKS) or _wide(head):
        return True
    return len(_CONTROL.findall(head)) <= len(head) * _MOST_CONTROL


def is_wide(data: bytes) -> bool:
    """Whether this is UTF-16 or UTF-32, which ASCII formats such as e-mail never are by themselves."""
    wide = any(data.startswith(mark) for mark, name in _MARKS if name != "utf-8-sig")
    return wide or _wide(data[:_SAMPLE]) is not None


def _marked(data: bytes) -> str | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    return None


def _strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _declared(data: bytes, declared: str | None) -> str | None:
    if declared is None:
        return None
    try:
        codec = codecs.lookup(declared.strip())
    except (LookupError, ValueError):
        return None
    # Not every codec makes text of bytes: there is one that unpacks archives.
    name = codec.name if isinstance(codec.decode(b"")[0], str) else "utf-8"
    return data.decode(_LARGER.get(name, name), errors="replace")


def _guessed(data: bytes) -> str:
    if wide := _wide(data[:_SAMPLE]):
        return data.decode(wide, errors="replace")
    if not looks_like_text(data[:_SAMPLE]):
        raise CannotRead("it is not text: it holds control characters")
    if data.isascii() and b"\x1b" not in data:
        return data.decode("ascii")
    return _broken_utf8(data) or data.decode(_legacy(data), errors="replace")


def _wide(head: bytes) -> str | None:
    """UTF-16 without its mark: in text with Latin letters or spaces every other byte is often 0."""
    pairs = max(1, len(head) // 2)
    low, high = head[1::2].count(0) / pairs, head[::2].count(0) / pairs
    if low > 0.3 > 0.05 > high:
        return "utf-16-le"
    return "utf-16-be" if high > 0.3 > 0.05 > low else None


def _broken_utf8(data: bytes) -> str | None:
    """UTF-8 in which a few bytes are broken, as when a file was cut or joined."""
    text = data.decode("utf-8", errors="replace")
    beyond_ascii = sum(not character.isascii() for character in text[:_SAMPLE])
    broken = text.count("\ufffd", 0, _SAMPLE)
    return text if broken <= max(1, _MOST_BROKEN * beyond_ascii) < beyond_ascii - 2 else None


def _legacy(data: bytes) -> str:
    sample = _sample(data)
    best = from_bytes(sample, cp_isolation=_LEGACY).best()
    if best is None:
        return "cp1252"
    if best.encoding in _LIKE_WESTERN and (western := _strictly(sample, "cp1252")):
        return best.encoding if _SYMBOL_IN_WORD.search(western) else "cp1252"
    return best.encoding


def _sample(data: bytes) -> bytes:
    """The beginning up to the end of a line: a cut inside a character would mislead."""
    if len(data) <= _SAMPLE:
        return data
    return data[: data.rfind(b"\n", 0, _SAMPLE) + 1] or data[:_SAMPLE]
