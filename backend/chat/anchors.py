"""What a sentence claims that no likeness can stand in for: numbers, dates, codes, names, negation."""

import unicodedata

import regex

from indexing.analysis import exact_terms

_MONTHS = (
    "january february march april may june july august september october november december"
).split()
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()
    )
    if word != "one"  # most often it counts nothing
}
_ISO_DATE = regex.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_NUMBER = regex.compile(r"\d+(?:[.,\u00a0\u202f' ]\d{3})*(?:[.,]\d+)?")
_WORD = regex.compile(r"[\p{L}\p{M}][\p{L}\p{M}'’-]*")
_SENTENCE_START = regex.compile(r"(?:^|[.!?:;|•\n]\s*|[\"“‘(]\s*)$")
_NEGATION = regex.compile(
    r"\b(?:no|not|never|none|nobody|nothing|neither|nor|without|cannot|nicht|kein\w*|nie|ohne|ne\s+\w+\s+pas|jamais|sans)\b"
    r"|n['’]t\b|不|没有|無い|ない|ません|なし|禁止",
    regex.IGNORECASE,
)
_THOUSANDS = regex.compile(r"(?<=\d)[,.\u00a0\u202f' ](?=\d{3}(?:\D|$))")


def anchors(text: str) -> frozenset[str]:
    """The numbers, dates, codes and names of a text, each in one spelling.

    A name is a capitalised word that does not begin a sentence. English month names and the
    numbers two to twelve in words count as what they say; `2025-03-01` says the same as
    `1 March 2025`.
    """
    folded = unicodedata.normalize("NFKC", text)
    dates = {f"month:{int(month)}" for _, month, _ in _ISO_DATE.findall(folded)}
    rest = _ISO_DATE.sub(r"\1 and \3", folded)
    codes = exact_terms(rest)
    for code in codes:
        rest = rest.replace(code, " \N{WHITE SQUARE} ")
    named = {f"code:{code.casefold()}" for code in codes}
    return frozenset(dates | named | _numbers(rest) | _names(rest))


def negated(text: str) -> bool:
    return _NEGATION.search(text) is not None


def _numbers(text: str) -> set[str]:
    return {f"number:{_value(_THOUSANDS.sub('', number))}" for number in _NUMBER.findall(text)}


def _value(number: str) -> str:
    whole, point, fraction = number.replace(",", ".").partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")


def _names(text: str) -> set[str]:
    found = set()
    for match in _WORD.finditer(text):
        word = match.group()
        lower = word.casefold()
        if lower in _NUMBER_WORDS:
            found.add(f"number:{_NUMBER_WORDS[lower]}")
        elif lower in _MONTHS and word[0].isupper():
            found.add(f"month:{_MONTHS.index(lower) + 1}")
        elif word[0].isupper() and len(word) > 1 and not _begins_sentence(text, match.start()):
            found.add(f"name:{lower.removesuffix('’s').removesuffix(chr(39) + 's')}")
    return found


def _begins_sentence(text: str, at: int) -> bool:
    return _SENTENCE_START.search(text, max(0, at - 4), at) is not None
