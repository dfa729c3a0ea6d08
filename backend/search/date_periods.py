"""Read the words of a date as the days that they mean: a day, a week, a month, a quarter, a season, a year.

Days, weeks, months and years are read by `dateparser`, which knows them in many languages and says which of them is
meant. Quarters, seasons and "last three weeks", which it does not know, are counted here; seasons are the
meteorological ones of the northern hemisphere.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from types import MappingProxyType

import regex

LANGUAGES = ("en", "de", "zh", "ja")
SEASONS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("spring", "frühling", "frühjahr", "春"), 3),
        **dict.fromkeys(("summer", "sommer", "夏"), 6),
        **dict.fromkeys(("autumn", "fall", "herbst", "秋"), 9),
        **dict.fromkeys(("winter", "冬"), 12),
    }
)
"""The month in which each begins."""
QUARTERS: Mapping[str, int] = MappingProxyType(
    {"first": 1, "second": 2, "third": 3, "fourth": 4, "q1": 1, "q2": 2, "q3": 3, "q4": 4}
)
_DAYS: Mapping[str, int] = MappingProxyType(
    {"day": 1, "week": 7, "month": 30, "year": 365, "tag": 1, "woche": 7, "monat": 30, "jahr": 365}
)
_YEAR = regex.compile(r"[0-9]{4}")
_NUMBER = regex.compile(r"[0-9]+")
_LAST_YEAR = regex.compile("去年|昨年")
_LAST_OF_LIBRARY = 9998
"""Years beyond have no following day."""
_lock = threading.Lock()
"""The library keeps state between calls."""


@dataclass(frozen=True, slots=True)
class Period:
    """The days `[start, end)`."""

    start: date
    end: date


def read_quarter(words: str, today: date) -> Period | None:
    """Read "q3 2025", "third quarter of 2025" or "last quarter"."""
    year = _YEAR.search(words)
    number = next((QUARTERS[name] for name in QUARTERS if words.startswith(name)), None)
    if year is not None and number is not None:
        return _months(int(year[0]), 3 * number - 2, 3)
    quarter = (today.month - 1) // 3
    return _months(today.year, 3 * quarter - 2, 3)


def read_season(words: str, today: date) -> Period | None:
    """Read "summer 2025", "last summer" (the latest that is over) or "去年の夏"."""
    month = next((SEASONS[name] for name in SEASONS if name in words), None)
    if month is None:
        return None
    year = _YEAR.search(words)
    if year is not None:
        return _months(int(year[0]), month, 3)
    if _LAST_YEAR.search(words):
        return _months(today.year - 1, month, 3)
    seasons = (_months(today.year - ago, month, 3) for ago in range(3))
    return next((each for each in seasons if each.end <= today), None)


def read_recent(words: str, today: date) -> Period | None:
    """Read "last 3 weeks": so many days up to today."""
    number = _NUMBER.search(words)
    days = next((_DAYS[name] for name in _DAYS if name in words), None)
    if number is None or days is None:
        return None
    return Period(today - timedelta(days=int(number[0]) * days), today + timedelta(days=1))


def read_year(words: str) -> Period:
    return _months(int(words), 1, 12)


@lru_cache(maxsize=1_000)
def read_with_library(words: str, today: date) -> Period | None:
    """Read a day, a week, a month or a year; without a year, the latest one."""
    # Half a second of imports, which only queries with a date pay.
    from dateparser.date import DateDataParser  # noqa: PLC0415

    with _lock:
        parser = DateDataParser(
            languages=list(LANGUAGES),
            settings={
                "RELATIVE_BASE": datetime.combine(today, time(12)),
                "PREFER_DATES_FROM": "past",
                "PREFER_DAY_OF_MONTH": "first",
                "PARSERS": ["relative-time", "absolute-time"],
            },
        )
        found = parser.get_date_data(words)
    if found.date_obj is None or found.date_obj.year > _LAST_OF_LIBRARY:
        return None
    return _period_around(found.date_obj.date(), found.period)


def _period_around(day: date, unit: str) -> Period | None:
    match unit:
        case "day":
            return Period(day, day + timedelta(days=1))
        case "week":
            monday = day - timedelta(days=day.weekday())
            return Period(monday, monday + timedelta(days=7))
        case "month":
            return _months(day.year, day.month, 1)
        case "year":
            return _months(day.year, 1, 12)
        case _:
            return None


def _months(year: int, month: int, count: int) -> Period:
    """Return so many months from the first on; months before January are of the year before."""
    return Period(_first_of(year, month), _first_of(year, month + count))


def _first_of(year: int, month: int) -> date:
    more, index = divmod(month - 1, 12)
    return date(year + more, index + 1, 1)
