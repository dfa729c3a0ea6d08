"""Among which documents is searched."""

import re
from datetime import date, datetime, time, timedelta
from typing import Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from indexing.index.person_keys import person_key
from indexing.index.protocols import DateRange, Filters

MOST_VALUES = 100
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FIRST, _LAST = date(1, 1, 3), date(9999, 12, 28)
"""Between these every day has a midnight in every time zone, and one that follows."""

Names: TypeAlias = Annotated[
    tuple[Annotated[str, Field(max_length=1_000)], ...], Field(min_length=1, max_length=MOST_VALUES)
]


def _check_day(day: object) -> object:
    """A number would be taken for seconds since 1970."""
    if isinstance(day, str) and _DAY.fullmatch(day):
        return day
    raise ValueError("write a day as 2026-03-31")


Day: TypeAlias = Annotated[date, BeforeValidator(_check_day)]


class FiltersBody(BaseModel):
    """Fields are AND-ed, values within a field OR-ed. What is left out does not filter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sources: Names | None = None
    media_types: Names | None = None
    people: Names | None = Field(
        default=None,
        description="Authors and owners: each by the key that facets tell, an e-mail address, or a"
        " name where no address is known",
    )
    tags: Names | None = Field(default=None, description="Each as key=value")
    since: Day | None = Field(default=None, description="Updated on this day or later")
    until: Day | None = Field(default=None, description="Updated on this day or before")

    def filters(self) -> Filters:
        return Filters(
            sources=_to_set(self.sources),
            media_types=_to_set(self.media_types),
            people=None if self.people is None else frozenset(map(person_key, self.people)),
            tags=_to_set(self.tags),
            updated=DateRange(
                _midnight(self.since) if self.since else None,
                _midnight(self.until, days=1) if self.until else None,
            ),
        )


def _to_set(values: tuple[str, ...] | None) -> frozenset[str] | None:
    return None if values is None else frozenset(values)


def _midnight(day: date, days: int = 0) -> datetime:
    """The moment here at which the day begins, so many days later."""
    day = min(max(day, _FIRST), _LAST)
    return datetime.combine(day + timedelta(days=days), time.min).astimezone()
