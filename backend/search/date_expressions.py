"""Find the dates that a query names: "in January 2026", "since March", "last autumn", "Q3 2025", "letzte Woche", "去年".

In English, German, Chinese and Japanese. What may as well be something else is none: a number is a year, and a month
without a year is one, only after a preposition, and a year only where no noun follows ("after 2000 hours").
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from types import MappingProxyType

import regex

from backend.search.date_periods import (
    SEASONS,
    Period,
    read_quarter,
    read_recent,
    read_season,
    read_with_library,
    read_year,
)
from connectors.document import Span
from indexing.index.protocols import DateRange
from indexing.text.stop_words import FUNCTION_WORDS
from indexing.text.tokenizer import plain_words

_YEAR = r"(?:19[5-9][0-9]|20[0-9][0-9])"
_FULL_MONTH = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|januar|jänner|februar|märz|mai|juni|juli|oktober|dezember"
)
_MONTH = rf"(?:{_FULL_MONTH}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|okt|nov|dec|dez)\b\.?)"
_SEASON = "|".join(name for name in SEASONS if name.isascii() or "ü" in name)
_LAST = r"(?:last|previous|letzte[mnrs]?|vorige[mnrs]?|vergangene[mnrs]?)"
_UNITS: Mapping[str, str] = MappingProxyType(
    {"woche": "week", "monat": "month", "jahr": "year", "gestern": "yesterday"}
)
_UNIT = "week|month|year|woche|monat|jahr"
_WITHIN = ("in", "from", "during", "of", "on", "im", "vom", "am", "aus")
_SHORTEST_MONTH, _SHORTEST_YEAR = 28, 365
"""Days."""
_MONTH_ALONE = frozenset({"in", "during", "from", "im", "since", "seit"})
_YEAR_ALONE = frozenset(_WITHIN) - {"of", "on"}
_SINCE, _AFTER = frozenset({"since", "seit"}), frozenset({"after", "nach"})
_BEFORE, _UNTIL = frozenset({"before", "vor"}), frozenset({"until", "till", "bis"})
_OPEN = _SINCE | _AFTER | _BEFORE | _UNTIL
_BOUND = "|".join(sorted({*_WITHIN, *_OPEN}))
_FUNCTION_WORDS = (FUNCTION_WORDS["English"] | FUNCTION_WORDS["German"]) - {
    "to",
    "and",
    "or",
    "und",
}

_EXPRESSION = regex.compile(
    rf"""(?xi)
    (?: (?<![\w-]) (?P<bound>{_BOUND}) \s+ (?:(?:the|dem|der|den|year|jahr)\s+)* )?
    (?<![\w.-])
    (?: (?P<season>{_LAST}\s+(?:{_SEASON}) | (?:{_SEASON})\s+(?:of\s+)?{_YEAR})
      | (?P<quarter>q[1-4][\s/-]*{_YEAR} | {_LAST}\s+(?:quarter|quartal)
          | (?:first|second|third|fourth)\s+quarter\s+(?:of\s+)?{_YEAR})
      | (?P<recent>(?:last|past|letzten|vergangenen)\s+[0-9]{{1,3}}
          \s+(?:day|week|month|year|tag|woche|monat|jahr)(?:s|en?)?)
      | (?P<day>[0-9]{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}
          | {_MONTH}\s+[0-9]{{1,2}}(?:st|nd|rd|th)?,?\s+{_YEAR})
      | (?P<month>{_MONTH},?\s+(?:of\s+)?{_YEAR})
      | (?P<relative>yesterday | gestern | {_LAST}\s+(?:{_UNIT}))
      | (?P<iso>[0-9]{{4}}-[0-9][0-9]-[0-9][0-9])
      | (?P<month_alone>(?:{_FULL_MONTH}))(?!\.?\s*[0-9])
      | (?P<year>{_YEAR})(?=\s*(?:$|[?!.,;:)\0]|(?<=\s)\L<function_words>\b))
    )
    (?![\w-])(?!\s+of\b)
    """,
    function_words=sorted(_FUNCTION_WORDS),
)
_SPACELESS_EXPRESSION = regex.compile(
    rf"""(?x)
    (?P<season>(?:去年|昨年)の?[春夏秋冬][天季]?)
  | (?P<day>{_YEAR}年[0-9]{{1,2}}月[0-9]{{1,2}}日)
  | (?P<month>{_YEAR}年[0-9]{{1,2}}月)
  | (?P<relative>昨天|昨日|上周|上个月|去年|先週|先月|昨年)
    """
)
MAY_NAME_A_DATE = regex.compile(
    rf"(?i){_YEAR}|[年周週月天日]|\b(?:{_LAST}|past|yesterday|gestern|{_FULL_MONTH})\b"
)
"""What stands in each text that names a date, and in few others: it is looked for first, because that costs least."""


@dataclass(frozen=True, slots=True)
class DateExpression:
    span: Span
    """In the text, its preposition included."""
    dates: DateRange
    names: frozenset[str]
    """Words of which a text that holds all names the same time."""


def find_dates(text: str, today: date) -> list[DateExpression]:
    """Return the dates that a text names; whatever the text is, something is returned."""
    return [*_find(_EXPRESSION, text, today), *_find(_SPACELESS_EXPRESSION, text, today)]


def _find(expression: regex.Pattern[str], text: str, today: date) -> Iterator[DateExpression]:
    for match in expression.finditer(text):
        groups = match.groupdict()
        bound = (groups.pop("bound", None) or "").casefold()
        kind, words = next((kind, words) for kind, words in groups.items() if words)
        period = _read(kind, " ".join(words.casefold().split()), bound, today)
        if period is not None:
            names = frozenset() if bound in _OPEN else _names(kind, words, period)
            yield DateExpression(Span(*match.span()), _bounded(period, bound), names)


def _read(kind: str, words: str, bound: str, today: date) -> Period | None:
    match kind:
        case "season":
            return read_season(words, today)
        case "quarter":
            return read_quarter(words, today)
        case "recent":
            return read_recent(words, today)
        case "year":
            usual = bound in _YEAR_ALONE | _OPEN and int(words) <= today.year
            return read_year(words) if usual else None
        case "month_alone" if bound not in _MONTH_ALONE:
            return None
        case "iso" if not bound:
            return None
        case "relative":
            return read_with_library(_in_english(words), today)
        case "month":
            period = read_with_library(words, today)
            # Of "2026年99月" the library makes a day.
            return (
                period if period and (period.end - period.start).days >= _SHORTEST_MONTH else None
            )
        case _:
            return read_with_library(words, today)


def _in_english(words: str) -> str:
    """Say "letzten Monat" as "last month", whatever its ending."""
    _, _, unit = words.partition(" ")
    return f"last {_UNITS.get(unit, unit)}" if unit else _UNITS.get(words, words)


def _names(kind: str, words: str, period: Period) -> frozenset[str]:
    match kind:
        case "month" | "quarter" | "season" | "year" if any(map(str.isdecimal, words)):
            return frozenset(plain_words(words)) - {"of", "quarter"}
        case "relative" if (period.end - period.start).days >= _SHORTEST_YEAR:
            return frozenset({str(period.start.year)})
        case _:
            return frozenset()


def _bounded(period: Period, bound: str) -> DateRange:
    start, end = _midnight(period.start), _midnight(period.end)
    if bound in _SINCE:
        return DateRange(start, None)
    if bound in _AFTER:
        return DateRange(end, None)
    if bound in _BEFORE:
        return DateRange(None, start)
    return DateRange(None, end) if bound in _UNTIL else DateRange(start, end)


def _midnight(day: date) -> datetime:
    """Return when a day begins in UTC, as the months of the index count."""
    return datetime.combine(day, time(), UTC)
