"""Read a text as words with places, and find the facts that a passage must have to support it.

A fact is a number with its unit, a month, an ordinal, a share, a code, a name, or a word that has an
opposite. Only what can be recognized without knowing the language's grammar is read; names are read in
English texts, where a capital means one.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import pairwise

import regex

from backend.chat.citations.chinese_facts import find_names, write_numerals_in_figures
from backend.chat.citations.fact_words import (
    EPONYMS,
    MAGNITUDES,
    MEASURES,
    MONTH_NUMBERS,
    MONTHS,
    NUMBER_WORDS,
    OPPOSITES,
    ORDINALS,
    SHARES,
    stem,
)
from indexing.embedding.language_support import is_english
from indexing.text.normalization import fold
from indexing.text.stop_words import FUNCTION_WORDS
from indexing.text.tokenizer import find_identifiers, plain_words

_RARE_DIGIT = regex.compile(r"(?V1)[\d&&[\U00010000-\U0010ffff]]")
"""Of scripts whose digits the standard library may not know: it cannot read their numbers."""
_ISO_DATE = regex.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_DOTTED_DATE = regex.compile(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b")
_SPACELESS_DATE = regex.compile(r"(?:(\d{4})年)?(\d{1,2})月(\d{1,2})[日号]")
_FULL_HOUR = regex.compile(r"\b(\d{1,2}):00\b")
_GROUPING = regex.compile(r"(?<=^[1-9][\d.,'\u00a0\u202f ]*)[.,'\u00a0\u202f ](?=\d{3}(?!\d))")
_DIGITS = regex.compile(r"['\u00a0\u202f ]*\p{L}*$")
_TOKEN = regex.compile(
    r"(?P<number>(?<![\d.,])(?:[1-9]\d{0,2}(?:[.,'\u00a0\u202f ]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?))"
    r"(?P<ending>st|nd|rd|th|['’]?s)?+(?!\p{Ll}{1,2}(?=\d))"
    r"|(?P<code>\N{WHITE SQUARE}+)|(?P<sign>[%‰$€£¥]|°[CF]?)"
    r"|(?P<wide>[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}])"
    r"|(?P<word>[\p{L}\p{M}]++(?:['’][\p{L}\p{M}]++)*+)"
)
_POSSESSIVE = regex.compile(r"['’]s?$")
_SENTENCE_START = regex.compile(r"(?:^|[.!?:;|•>\n]\s*+|[\"“‘(*_-]\s*+)$")
_RANGE = frozenset({"to", "or", "and", "bis", "und", "oder"})
_ABOUT = frozenset(
    {"about", "approximately", "around", "roughly", "nearly", "almost", "circa", "over"}
)
_UNIT_DISTANCE = 4
_YEARS = frozenset(map(str, range(1000, 2101)))
FUNCTION = FUNCTION_WORDS["English"]


class FactKind(StrEnum):
    NUMBER = "number"
    MONTH = "month"
    ORDINAL = "ordinal"
    SHARE = "share"
    CODE = "code"
    NAME = "name"
    FIRST_WORD = "first word"
    """A word at the start of a sentence, where all have a capital: perhaps a name."""
    OPPOSITE = "opposite"
    MARKED_NAME = "marked name"
    """A part of a name, or a title, in a script without capitals."""


@dataclass(frozen=True, slots=True)
class Fact:
    kind: FactKind
    value: str
    """In a normalized spelling; of a number, as a decimal."""
    at: int
    """The place of its word in the text."""
    amount: float = 0.0
    measure: str = ""
    """Of a number, what it measures, where its unit is known."""
    factor: float = 1.0
    """How many of the smallest unit of its measure one is."""
    about: bool = False


@dataclass(frozen=True)
class Reading:
    """The words of a text in order, as they are compared, and its facts."""

    stems: tuple[str, ...]
    content: tuple[bool, ...]
    """For each word, whether it is more than a function word."""
    facts: tuple[Fact, ...]
    tokens: tuple[str, ...] = ()
    """The words as they are written, folded."""

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(self.tokens)

    @cached_property
    def joined(self) -> str:
        """The words without what stands between them."""
        return "".join(self.tokens)

    @cached_property
    def parts(self) -> frozenset[str]:
        """The same, codes and compounds split."""
        return frozenset(part for token in self.tokens for part in plain_words(token))

    @cached_property
    def places(self) -> Mapping[str, Sequence[int]]:
        """The places of each content word."""
        found: dict[str, list[int]] = {}
        for at, word in enumerate(self.stems):
            if self.content[at]:
                found.setdefault(word, []).append(at)
        return found


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    folded: str
    start: int


def read_text(text: str) -> Reading:
    """Parse a text; dates in figures count as the words that they mean."""
    plain = write_numerals_in_figures(unicodedata.normalize("NFKC", text))
    plain = _RARE_DIGIT.sub("\N{REPLACEMENT CHARACTER}", plain)
    plain = _write_dates_in_words(plain)
    codes, masked = _mask_codes(plain)
    tokens = _tokenize(masked, codes)
    counts = _scale_counts(tokens, list(_read_counts(tokens)))
    names = _read_marked_names(tokens, masked)
    facts = [*_read_codes(tokens), *counts, *_read_words(tokens, masked), *names]
    return Reading(
        tuple(_stem(token) for token in tokens),
        tuple(token.folded not in FUNCTION for token in tokens),
        tuple(sorted(facts, key=lambda fact: fact.at)),
        tuple(fold(_POSSESSIVE.sub("", token.text)) for token in tokens),
    )


def _tokenize(masked: str, codes: Sequence[str]) -> list[_Token]:
    """Split a text into words, numbers and signs; a run of squares is a placeholder of a code."""
    waiting = iter(codes)
    tokens: list[_Token] = []
    for found in _TOKEN.finditer(masked):
        kind = "number" if found["number"] else found.lastgroup or "word"
        text = next(waiting, found.group()) if kind == "code" else found.group()
        tokens.append(_Token(kind, text, fold(text), found.start()))
    return tokens


@lru_cache(maxsize=1 << 14)
def _stem_word(word: str) -> str:
    return stem(word)


def _stem(token: _Token) -> str:
    match token.kind:
        case "number":
            return _decimal(token.folded)
        case "code":
            return token.folded
        case _:
            return _stem_word(token.folded)


def _write_dates_in_words(text: str) -> str:
    def written(year: str | None, month: str, day: str) -> str:
        name = MONTHS[int(month) - 1].capitalize() if 1 <= int(month) <= len(MONTHS) else month
        return f" {int(day)} {name} {year or ''} "

    text = _ISO_DATE.sub(lambda found: written(found[1], found[2], found[3]), text)
    text = _DOTTED_DATE.sub(lambda found: written(found[3], found[2], found[1]), text)
    text = _SPACELESS_DATE.sub(lambda found: written(found[1], found[2], found[3]), text)
    return _FULL_HOUR.sub(r"\1", text)


def _mask_codes(text: str) -> tuple[list[str], str]:
    """Return the codes, and the text with each as a run of squares."""
    codes: list[str] = []
    for span in find_identifiers(text):
        codes.append(fold(span.of(text)))
        text = text[: span.start] + "\N{WHITE SQUARE}" * (span.end - span.start) + text[span.end :]
    return codes, text


def _read_codes(tokens: Sequence[_Token]) -> Iterator[Fact]:
    for at, token in enumerate(tokens):
        if token.kind == "code":
            yield Fact(FactKind.CODE, token.folded, at)


def _decimal(number: str) -> str:
    digits = _DIGITS.sub("", number)
    whole, point, fraction = _GROUPING.sub("", digits).replace(",", ".").partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")


def _read_counts(tokens: Sequence[_Token]) -> Iterator[Fact]:
    """Yield numbers, in figures and in words, and ordinals in figures."""
    after = 0
    for at, token in enumerate(tokens):
        if at < after:
            continue
        if token.kind == "number":
            yield _read_number(tokens, at)
        elif token.folded in NUMBER_WORDS or token.folded in MAGNITUDES:
            amount, after = _spelled(tokens, at)
            measure = _measure(tokens, after - 1, at)
            if amount is not None and (amount != 1 or measure):
                yield _number(tokens, at, amount, measure)


def _scale_counts(tokens: Sequence[_Token], counts: Sequence[Fact]) -> list[Fact]:
    """Multiply the bare numbers of a line of figures: in "Revenue in million euros 56.7 61.8" both are millions."""
    pairs = enumerate(pairwise(tokens))
    at = next((i for i, (a, b) in pairs if a.folded == "in" and b.folded in MAGNITUDES), None)
    if at is None:
        return list(counts)
    magnitude = MAGNITUDES[tokens[at + 1].folded]
    name, factor = _measure(tokens, at + 1, at + 1) or ("", 1.0)
    return [
        replace(
            one,
            value=f"{one.amount * magnitude:.12g}",
            amount=one.amount * magnitude,
            measure=name,
            factor=factor,
        )
        if one.at > at and one.kind is FactKind.NUMBER and not one.measure
        else one
        for one in counts
    ]


def _read_number(tokens: Sequence[_Token], at: int) -> Fact:
    token = tokens[at]
    amount = float(_decimal(token.folded))
    if token.folded.endswith(("st", "nd", "rd", "th")) and _month_beside(tokens, at) is None:
        return Fact(FactKind.ORDINAL, str(int(amount)), at)
    if token.folded.endswith("s") and amount % 10 == 0:
        return Fact(FactKind.NUMBER, _decimal(token.folded), at, amount, "decade", 1.0)
    end = at
    while end + 1 < len(tokens) and tokens[end + 1].folded in MAGNITUDES:
        end += 1
        amount *= MAGNITUDES[tokens[end].folded]
    return _number(tokens, at, amount, _measure(tokens, end, at))


def _number(
    tokens: Sequence[_Token], at: int, amount: float, measure: tuple[str, float] | None
) -> Fact:
    about = any(token.folded in _ABOUT for token in tokens[max(0, at - 2) : at])
    is_year = tokens[at].kind == "number" and tokens[at].text[:4] in _YEARS and amount < 3000
    name, factor = measure or ("year" if is_year else "", 1.0)
    return Fact(FactKind.NUMBER, f"{amount:.12g}", at, amount, name, factor, about)


def _spelled(tokens: Sequence[_Token], at: int) -> tuple[float | None, int]:
    """Return the number that words from `at` on say, and the place after them."""
    total, end = 0.0, at
    value: float | None = None
    while end < len(tokens):
        word = tokens[end].folded
        if word in NUMBER_WORDS:
            number = NUMBER_WORDS[word]
            if value is not None and not (value % 100 >= 20 and number < 10) and value % 100:
                break
            value = (value or 0) + number
        elif word in MAGNITUDES and (value is not None or end > at):
            value = (1 if value is None else value) * MAGNITUDES[word]
            if MAGNITUDES[word] > 100:
                total, value = total + value, 0
        elif not (word == "and" and value and value % 100 == 0 and _goes_on(tokens, end)):
            break
        end += 1
    return (total + value if value is not None else None), max(end, at + 1)


def _goes_on(tokens: Sequence[_Token], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].folded in NUMBER_WORDS


def _measure(tokens: Sequence[_Token], end: int, start: int) -> tuple[str, float] | None:
    """Return what a number measures: the sign before it, or the unit soon after it."""
    if month := _month_beside(tokens, start):
        return (f"day of {month}", 1.0)
    if start and tokens[start - 1].kind == "sign" and tokens[start - 1].folded in MEASURES:
        return MEASURES[tokens[start - 1].folded]
    for at, token in enumerate(tokens[end + 1 : end + 1 + _UNIT_DISTANCE], end + 1):
        following = tokens[at + 1].folded if at + 1 < len(tokens) else ""
        if token.folded == "percentage" and following.startswith("point"):
            return MEASURES["pp"]
        if (token.folded, following) == ("per", "cent"):
            return MEASURES["%"]
        if token.folded in MEASURES and (
            token.kind == "sign" or len(token.folded) > 1 or at == end + 1
        ):
            return MEASURES[token.folded]
        in_range = token.folded in _RANGE or token.folded in NUMBER_WORDS or token.kind == "number"
        if token.folded in FUNCTION and not in_range:
            return None
    return None


def _month_beside(tokens: Sequence[_Token], at: int) -> str | None:
    """Return the month that a day belongs to."""
    if len(tokens[at].folded.rstrip("stndrh")) > 2:
        return None
    beside = [tokens[i] for i in (at + 1, at - 1) if 0 <= i < len(tokens)]
    if at + 2 < len(tokens) and tokens[at + 1].folded == "of":
        beside.append(tokens[at + 2])
    for token in beside:
        if token.text[0].isupper() and token.folded in MONTH_NUMBERS:
            return MONTHS[MONTH_NUMBERS[token.folded] - 1]
    return None


def _read_words(tokens: Sequence[_Token], text: str) -> Iterator[Fact]:
    """Yield months, ordinals, shares, opposites and names."""
    named = is_english(text)
    for at, token in enumerate(tokens):
        if token.kind != "word":
            continue
        word = token.folded
        if _is_month(tokens, at):
            yield Fact(FactKind.MONTH, str(MONTH_NUMBERS[word]), at)
        elif (share := _share(tokens, at)) is not None:
            yield Fact(FactKind.SHARE, share, at)
        elif _is_ordinal(tokens, at):
            yield Fact(FactKind.ORDINAL, ORDINALS[word], at)
        elif named and _may_be_name(token):
            first = _SENTENCE_START.search(text, max(0, token.start - 4), token.start)
            name = fold(_POSSESSIVE.sub("", token.text))
            if not first:
                yield Fact(FactKind.NAME, name, at)
                continue
            if _is_before_name(tokens, at, text):
                yield Fact(FactKind.NAME, name, at)
            elif at == 0 and token.folded not in FUNCTION:
                yield Fact(FactKind.FIRST_WORD, name, at)
        if word in OPPOSITES:
            yield Fact(FactKind.OPPOSITE, word, at)


def _read_marked_names(tokens: Sequence[_Token], text: str) -> Iterator[Fact]:
    for span in find_names(text):
        places = [at for at, one in enumerate(tokens) if span.start <= one.start < span.end]
        if places:
            name = "".join(fold(_POSSESSIVE.sub("", tokens[at].text)) for at in places)
            yield Fact(FactKind.MARKED_NAME, name, places[0])


def _is_month(tokens: Sequence[_Token], at: int) -> bool:
    """Return whether a name of a month means one: short and ambiguous ones need a number beside them."""
    token = tokens[at]
    if token.folded not in MONTH_NUMBERS or not token.text[0].isupper():
        return False
    if len(token.text) > 3 and token.text not in {"March", "Sept"}:
        return True
    beside = [*tokens[max(0, at - 2) : at], *tokens[at + 1 : at + 2]]
    return any(other.kind == "number" for other in beside)


def _share(tokens: Sequence[_Token], at: int) -> str | None:
    word = tokens[at].folded
    before = tokens[at - 1].folded if at else ""
    after = tokens[at + 1].folded if at + 1 < len(tokens) else ""
    if word == "third" and (before in {"a", "one"} or after == "of") and before != "the":
        return "third"
    if word in {"quarter", "quarters"} and (
        before in ORDINALS or (before in NUMBER_WORDS and after != "of")
    ):
        return None
    return SHARES.get(word)


def _is_ordinal(tokens: Sequence[_Token], at: int) -> bool:
    word = tokens[at].folded
    before = tokens[at - 1] if at else None
    if word not in ORDINALS:
        return False
    return (
        word != "second"
        or before is None
        or not (before.kind == "number" or before.folded in {"per", "one"})
    )


def _may_be_name(token: _Token) -> bool:
    known = any(
        token.folded in table for table in (NUMBER_WORDS, MONTH_NUMBERS, ORDINALS, MEASURES)
    )
    known = known and token.folded not in EPONYMS
    return (
        token.text[0].isupper()
        and len(token.text) > 1
        and not known
        and token.folded not in FUNCTION
        and regex.fullmatch(r"I(?:['’]\w+)?", token.text) is None
    )


def _is_before_name(tokens: Sequence[_Token], at: int, text: str) -> bool:
    if tokens[at].folded in FUNCTION or at + 1 == len(tokens):
        return False
    following = tokens[at + 1]
    gap = text[tokens[at].start + len(tokens[at].text) : following.start]
    return gap == " " and following.kind == "word" and _may_be_name(following)
