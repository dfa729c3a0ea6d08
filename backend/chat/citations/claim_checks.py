"""Extract what a passage must contain to support a sentence: numbers, dates, codes, names, negation."""

import unicodedata
from collections.abc import Iterator

import regex

from indexing.embedding.language_support import is_english
from indexing.text.identifiers import find_identifiers
from indexing.text.normalization import fold

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH_NUMBERS = {name: number for number, name in enumerate(_MONTHS, 1)}
_MONTH_NUMBERS |= {name[:3]: number for name, number in _MONTH_NUMBERS.items()} | {"sept": 9}
_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_NUMBER_WORDS = {word: value for value, word in enumerate(_UNITS)} | {
    word: value for value, word in zip(range(20, 100, 10), _TENS, strict=True)
}
_SPELLED = regex.compile(
    rf"\b(?:(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(_UNITS[1:10])}))?|{'|'.join(_UNITS)})\b",
    regex.IGNORECASE,
)

_ISO_DATE = regex.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_DOTTED_DATE = regex.compile(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b")
_SPACELESS_DATE = regex.compile(r"(?:(\d{4})年)?(\d{1,2})月(\d{1,2})[日号]")
_FULL_HOUR = regex.compile(r"\b(\d{1,2}):00\b")
_NUMBER = regex.compile(
    r"(?<![\d.,])(?:[1-9]\d{0,2}(?:[.,'\u00a0\u202f ]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?)"
)
_GROUPING = regex.compile(r"(?<=^[1-9][\d.,'\u00a0\u202f ]*)[.,'\u00a0\u202f ](?=\d{3}(?!\d))")
_MONTH = regex.compile(
    rf"\b(?:{'|'.join(sorted(_MONTH_NUMBERS, key=len, reverse=True))})\b", regex.IGNORECASE
)
_WORD = regex.compile(r"[\p{L}\p{M}][\p{L}\p{M}'’-]*")
_POSSESSIVE = regex.compile(r"['’]s?$")
_SENTENCE_START = regex.compile(r"(?:^|[.!?:;|•>\n]\s*+|[\"“‘(*_-]\s*+)$")
_I = regex.compile(r"I(?:['’]\w+)?")

_NO_NEGATION = regex.compile(
    r"\b(?:no|not) (?:later|more|less|fewer|earlier|sooner) than\b|\bnot (?:only|just|merely)\b"
    r"|\bnicht (?:nur|später als|mehr als|weniger als)\b",
    regex.IGNORECASE,
)
_NEGATION = regex.compile(
    r"\b(?:no|not|never|none|nobody|nothing|nowhere|neither|nor|without|cannot|forbidden|prohibited|banned"
    r"|nicht|nichts|kein(?:e[mnrs]?)?|nie|niemals|niemand|ohne|weder|verboten|untersagt"
    r"|ne\s+\w+\s+(?:pas|jamais|plus)|jamais|sans|aucune?|interdite?s?|nunca|ningun[oa]?|prohibid[oa]s?)\b"
    r"|n['’]t\b|不(?!仅|但|只|过|同)|没有|沒有|未|勿|无法|禁止|無い|ない|ません|なし|ずに",
    regex.IGNORECASE,
)
_CLAUSE = regex.compile(
    r"[;:.!?。！？；，、\n]+\s*|,\s+|\s[–—-]\s|\b(?:but|because|unless|although|while|whereas|aber|sondern|weil|obwohl)\b",
    regex.IGNORECASE,
)


def anchors(text: str) -> frozenset[str]:
    """Return the numbers, dates, codes and names of a text in a normalised spelling, as `kind:value`.

    A name is a capitalised word of an English text that does not begin a sentence. English month
    names and numbers below a hundred in words count as what they say (but not "one", which most
    often counts nothing); `2025-03-01` and `01.03.2025` say the same as `1 March 2025`.
    """
    rest = unicodedata.normalize("NFKC", text)
    found: set[str] = set()
    for read in (_dates, _codes):
        more, rest = read(rest)
        found |= more
    return frozenset(found | _months(rest) | _numbers(rest) | set(_names(rest)))


def _dates(text: str) -> tuple[set[str], str]:
    """Return the months of dates in figures, and the text with their days and years left as numbers."""
    months = {f"month:{int(month)}" for _, month, _ in _ISO_DATE.findall(text)}
    months |= {f"month:{int(month)}" for _, month, _ in _DOTTED_DATE.findall(text)}
    months |= {f"month:{int(month)}" for _, month, _ in _SPACELESS_DATE.findall(text)}
    text = _ISO_DATE.sub(r"\1 / \3", text)
    text = _DOTTED_DATE.sub(r"\1 / \3", text)
    text = _SPACELESS_DATE.sub(lambda date: f"{date[1] or ''} / {date[3]}", text)
    return months, _FULL_HOUR.sub(r"\1", text)


def _codes(text: str) -> tuple[set[str], str]:
    found: set[str] = set()
    rest = text
    for span in find_identifiers(text):
        found.add(f"code:{fold(span.of(text))}")
        rest = rest[: span.start] + "\N{WHITE SQUARE}" * (span.end - span.start) + rest[span.end :]
    return found, rest


def _numbers(text: str) -> set[str]:
    in_figures = {_value(_GROUPING.sub("", number)) for number in _NUMBER.findall(text)}
    in_words = {_spelled(match.group()) for match in _SPELLED.finditer(text)}
    return {f"number:{value}" for value in in_figures | (in_words - {"1"})}


def _value(number: str) -> str:
    whole, point, fraction = number.replace(",", ".").partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")


def _spelled(number: str) -> str:
    return str(sum(_NUMBER_WORDS[part] for part in regex.split("[ -]", number.lower())))


def _months(text: str) -> set[str]:
    return {
        f"month:{_MONTH_NUMBERS[match.group().lower()]}"
        for match in _MONTH.finditer(text)
        if _is_month(text, match.start(), match.end())
    }


def _is_month(text: str, start: int, end: int) -> bool:
    """Whether a month name means a month: short forms and ambiguous words need a number next to them."""
    if not text[start].isupper():
        return False
    if end - start > 3 and text[start:end] not in {"March", "Sept"}:
        return True
    beside = text[max(0, start - 5) : start] + text[end : end + 6]
    return any(character.isdigit() for character in beside)


def _names(text: str) -> Iterator[str]:
    if not is_english(text):
        return
    for match in _WORD.finditer(text):
        word = match.group()
        lower = word.lower()
        if not word[0].isupper() or len(word) == 1 or _I.fullmatch(word):
            continue
        if lower in _NUMBER_WORDS or lower in _MONTH_NUMBERS:
            continue
        if not _SENTENCE_START.search(text, max(0, match.start() - 4), match.start()):
            yield f"name:{fold(_POSSESSIVE.sub('', word))}"


def is_negated(text: str) -> bool:
    """Whether the text denies or forbids something."""
    return _NEGATION.search(_NO_NEGATION.sub(" ", text)) is not None


def split_clauses(text: str) -> list[str]:
    """Split a text into parts that may each be negated separately."""
    return [part for part in _CLAUSE.split(text) if part.strip()]
