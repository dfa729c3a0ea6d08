"""Numbers and names of texts in Chinese: numerals as figures, and names that can be recognized by their signs, as Chinese has no capitals."""

from collections.abc import Iterator

import regex

from connectors.document import Span

_DIGITS = {digit: at for at, digit in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "○": 0,
    "两": 2,
    "兩": 2,
}
_PLACES = {"十": 10, "百": 100, "千": 1_000}
_MYRIADS = {"万": 10_000, "萬": 10_000, "亿": 100_000_000, "億": 100_000_000}
_ANY = "".join((*_DIGITS, *_PLACES, *_MYRIADS))
_COUNTED = (
    *("年", "月", "日", "号", "號", "岁", "歲", "天", "周", "小时", "分钟", "秒", "世纪", "世紀"),
    *("个", "個", "名", "位", "次", "座", "所", "条", "條", "家", "种", "種", "场", "場", "支", "人", "部", "届", "屆", "部分"),
    *("米", "公里", "公尺", "公斤", "公顷", "吨", "元", "美元", "倍", "票", "枚", "架", "艘", "辆", "层", "卷", "章", "集", "册", "轮"),
)  # fmt: skip
_YEAR = regex.compile(r"(?<![〇零○一二三四五六七八九十])[一二][〇零○一二三四五六七八九]{3}(?= ?年)")
_NUMERAL = regex.compile(
    rf"(?<![{_ANY}几幾数數\d])(?:[二两兩三四五六七八九十百千][{_ANY}]*|一(?=月)|一[{_ANY}]+)(?= ?(?:{'|'.join(_COUNTED)}))"
)
_APPROXIMATE = regex.compile(r"[零〇○一二两兩三四五六七八九]{2,}")
"""Two digits side by side, without a place between them: "two or three"."""
_POINT = regex.compile(r"(?<=(?P<before>\p{Han}{1,2}))[·•・‧](?=(?P<after>\p{Han}{1,2}))")
_HAN = regex.compile(r"\p{Han}")
_NOT_IN_NAMES = frozenset(
    "的是在和与與及于於为為了曾也就都而之这這那有写寫说說被把从從到对對将將又并並等因"
)
"""Characters of function words and common verbs, which foreign names are hardly written with."""
_TITLE = regex.compile(r"(?<=《)[^《》]{2,40}(?=》)")


def is_in_chinese_characters(text: str) -> bool:
    return bool(_HAN.search(text))


def write_numerals_in_figures(text: str) -> str:
    """Write Chinese numerals that count something, or that a date is made of, in figures.

    One alone is left, as it is most often an article; so is what merely says about how many.
    """
    text = _YEAR.sub(lambda found: "".join(str(_DIGITS[one]) for one in found[0]), text)
    return _NUMERAL.sub(lambda found: _write_figures(found[0]), text)


def _write_figures(numeral: str) -> str:
    return numeral if _APPROXIMATE.search(numeral.replace("零", "")) else str(read_numeral(numeral))


def read_numeral(numeral: str) -> int:
    """Return the number that a numeral of digits and places means."""
    total = section = digit = 0
    for sign in numeral:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
        elif sign in _PLACES:
            section += (digit or 1) * _PLACES[sign]
            digit = 0
        else:
            total = (total + section + digit or 1) * _MYRIADS[sign]
            section = digit = 0
    return total + section + digit


def find_names(text: str) -> Iterator[Span]:
    """Yield titles, and the two characters on each side of the point in a foreign name, as nothing says where it begins and ends.

    Of these only the one beside the point where the other is none of names.
    """
    for found in _POINT.finditer(text):
        start, end = found.span("before")
        yield Span(end - 1 if found["before"][0] in _NOT_IN_NAMES else start, end)
        start, end = found.span("after")
        yield Span(start, start + 1 if found["after"][-1] in _NOT_IN_NAMES else end)
    for found in _TITLE.finditer(text):
        yield Span(*found.span())
