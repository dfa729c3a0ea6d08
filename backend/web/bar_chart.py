"""Stacked bars by day: where each of them is drawn.

Across, a place is in per cent of the plot, so that the browser fits it to the page while letters keep their size; down, in pixels.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate, pairwise
from typing import Literal

TOP, PLOT_HEIGHT, FOOT = 12, 176, 24
"""In pixels: room for the upper half of the highest mark, the bars, the days below them."""
HEIGHT = TOP + PLOT_HEIGHT + FOOT
LETTER, WIDE_LETTER = 9, 12
"""At most this wide in pixels are a letter of a mark, and one that is Chinese."""
_GAP = 8
"""Between the marks and the bars."""
_FILLED = 0.78
"""How much of the room of a day its bar takes."""
_MOST_MARKS = 4


@dataclass(frozen=True, slots=True)
class Series:
    """One color of the chart: a number for each day, zero or more."""

    name: str
    """Empty: nobody's."""
    values: Mapping[date, float]
    is_rest: bool = False
    """Whether it is the sum of those that have no color of their own."""

    @property
    def total(self) -> float:
        return sum(self.values.values())


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a bar, from its upper edge down."""

    series: int
    value: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    day: date
    x: float
    width: float
    segments: tuple[Segment, ...]
    """From the bottom up."""


@dataclass(frozen=True, slots=True)
class ValueMark:
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class DayMark:
    x: float
    anchor: Literal["start", "middle", "end"]
    day: date


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    series: tuple[Series, ...]
    bars: tuple[Bar, ...]
    """Of the days on which there is anything."""
    value_marks: tuple[ValueMark, ...]
    day_marks: tuple[DayMark, ...]
    gutter: int
    """Pixels beside the bars, for the values."""


def lay_out_bars(
    days: Sequence[date], series: Sequence[Series], write_value: Callable[[float], str]
) -> BarChart | None:
    """Return where everything is drawn; None where there is nothing to draw."""
    totals = {day: sum(one.values.get(day, 0) for one in series) for day in days}
    highest = max(totals.values(), default=0)
    if highest <= 0:
        return None
    values = _choose_marks(highest)
    scale = PLOT_HEIGHT / values[-1]
    marks = tuple(
        ValueMark(round(TOP + PLOT_HEIGHT - one * scale, 2), write_value(one)) for one in values
    )
    room = 100 / len(days)
    return BarChart(
        series=tuple(series),
        bars=tuple(
            Bar(
                day,
                round(room * (place + (1 - _FILLED) / 2), 3),
                round(room * _FILLED, 3),
                _stack([one.values.get(day, 0) for one in series], scale),
            )
            for place, day in enumerate(days)
            if totals[day] > 0
        ),
        value_marks=marks,
        day_marks=_mark_days(days),
        gutter=_GAP + max(measure_width(mark.text) for mark in marks),
    )


def measure_width(text: str) -> int:
    """Return how many pixels a text takes at most."""
    return sum(LETTER if letter.isascii() else WIDE_LETTER for letter in text)


def _stack(values: Sequence[float], scale: float) -> tuple[Segment, ...]:
    # Edges are rounded, not heights, so that neighbors touch and the heights add up to the sum.
    edges = [round(value * scale, 2) for value in accumulate(values, initial=0.0)]
    floor = TOP + PLOT_HEIGHT
    return tuple(
        Segment(number, values[number], round(floor - upper, 2), round(upper - lower, 2))
        for number, (lower, upper) in enumerate(pairwise(edges))
        if values[number] > 0
    )


def _choose_marks(highest: float) -> list[float]:
    """Return round numbers from zero to the first that is not below the highest value."""
    power = 10.0 ** math.floor(math.log10(highest / _MOST_MARKS))
    steps = (power * factor for factor in (1, 2, 5))
    step = next((one for one in steps if one * _MOST_MARKS >= highest), power * 10)
    return [step * number for number in range(math.ceil(highest / step) + 1)]


def _mark_days(days: Sequence[date]) -> tuple[DayMark, ...]:
    """Mark the first day, the last, and the one between: so many have room on a phone."""
    if len(days) < 3:
        return (DayMark(0, "start", days[0]),)
    middle = len(days) // 2
    return (
        DayMark(0, "start", days[0]),
        DayMark(round(100 * (middle + 0.5) / len(days), 3), "middle", days[middle]),
        DayMark(100, "end", days[-1]),
    )
