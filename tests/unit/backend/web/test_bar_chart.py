"""Stacked bars: heights add up, nothing leaves its box, and the colors stand out."""

import re
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import backend.web
from backend.api.languages import Language
from backend.web.bar_chart import (
    HEIGHT,
    PLOT_HEIGHT,
    TOP,
    BarChart,
    Series,
    lay_out_bars,
    measure_width,
)
from backend.web.catalogs import load_messages

TODAY = date(2026, 3, 31)
NARROWEST = 200
"""Pixels of the plot on the smallest of phones."""
STATIC = Path(backend.web.__file__).parent / "static"
_VALUES = st.integers(0, 2**70) | st.floats(1e-6, 1e24) | st.just(0)


def _days(number: int) -> list[date]:
    return [TODAY - timedelta(days=back) for back in reversed(range(number))]


@st.composite
def _charts(draw: st.DrawFn) -> tuple[list[date], list[Series]]:
    days = _days(draw(st.sampled_from([1, 2, 3, 7, 30, 90])))
    some = st.dictionaries(st.sampled_from(days), _VALUES)
    return days, [Series(f"model {n}", values) for n, values in enumerate(draw(st.lists(some)))]


def _draw(days: list[date], series: list[Series], language: Language = "en") -> BarChart | None:
    return lay_out_bars(days, series, load_messages(language).format_compact)


@given(_charts())
def test_heights_add_up_to_the_sum_of_a_day(made: tuple[list[date], list[Series]]) -> None:
    days, series = made
    chart = _draw(days, series)
    totals = {day: sum(one.values.get(day, 0) for one in series) for day in days}
    if chart is None:
        assert not any(totals.values())
        return
    assert [bar.day for bar in chart.bars] == [day for day in days if totals[day] > 0]
    highest = max(totals.values())
    full = max(sum(part.height for part in bar.segments) for bar in chart.bars)
    # The scale wastes at most half of the room.
    assert PLOT_HEIGHT / 2 <= full <= PLOT_HEIGHT + 0.01
    for bar in chart.bars:
        assert [part.value for part in bar.segments] == [
            one.values[bar.day] for one in series if one.values.get(bar.day)
        ]
        drawn = sum(part.height for part in bar.segments)
        assert drawn == pytest.approx(full * totals[bar.day] / highest, abs=0.02)
        for part in bar.segments:
            assert part.height == pytest.approx(full * part.value / highest, abs=0.03)
        for below, above in pairwise(bar.segments):
            assert above.y + above.height == pytest.approx(below.y, abs=0.001)
        assert bar.segments[0].y + bar.segments[0].height == pytest.approx(TOP + PLOT_HEIGHT)


@given(_charts(), st.sampled_from(["en", "zh"]), st.integers(NARROWEST, 2_000))
def test_nothing_leaves_its_box(
    made: tuple[list[date], list[Series]], language: Language, width: int
) -> None:
    chart = _draw(*made, language)
    if chart is None:
        return
    for bar in chart.bars:
        assert bar.x >= 0
        assert bar.x + bar.width <= 100
        for part in bar.segments:
            assert part.height >= 0
            assert part.y >= TOP - 0.01
    for left, right in pairwise(chart.bars):
        assert left.x + left.width < right.x
    for mark in chart.value_marks:
        assert measure_width(mark.text) <= chart.gutter
        assert 6 <= mark.y <= HEIGHT - 6
    assert len({mark.text for mark in chart.value_marks}) == len(chart.value_marks)
    write_day = load_messages(language).format_day_of_year
    edges = [
        _edges(mark.x * width / 100, mark.anchor, measure_width(write_day(mark.day)))
        for mark in chart.day_marks
    ]
    assert edges[0][0] >= 0
    assert edges[-1][1] <= width
    assert all(left[1] <= right[0] for left, right in pairwise(edges))


def _edges(x: float, anchor: str, width: float) -> tuple[float, float]:
    start = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
    return start, start + width


def test_marks_are_round_and_reach_the_highest() -> None:
    chart = _draw(_days(7), [Series("large", {TODAY: 37_000}), Series("small", {TODAY: 500})])
    assert chart is not None
    assert [mark.text for mark in chart.value_marks] == ["0", "10K", "20K", "30K", "40K"]
    assert [mark.y for mark in chart.value_marks][:: len(chart.value_marks) - 1] == [
        TOP + PLOT_HEIGHT,
        TOP,
    ]
    chinese = _draw(_days(7), [Series("large", {TODAY: 37_000})], "zh")
    assert chinese is not None
    assert [mark.text for mark in chinese.value_marks] == ["0", "1万", "2万", "3万", "4万"]


def test_without_usage_there_is_no_chart() -> None:
    assert _draw(_days(7), []) is None
    assert _draw(_days(7), [Series("large", {})]) is None
    assert _draw(_days(7), [Series("large", {TODAY: 0})]) is None
    assert _draw(_days(7), [Series("large", {TODAY - timedelta(days=7): 5})]) is None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_color_stands_out_from_the_ground(theme: str) -> None:
    blocks = _read_themes("base.css", theme), _read_themes("plots.css", theme)
    for ground, colors in zip(*blocks, strict=True):
        assert len(colors) == 7
        for name, color in colors.items():
            assert _contrast(color, ground["--ground"]) >= 3, (theme, name)


def _read_themes(sheet: str, theme: str) -> list[dict[str, str]]:
    """Return the colors of a theme: where it is chosen, and where the system has it."""
    css = (STATIC / sheet).read_text(encoding="utf-8")
    selectors = {
        "light": [r":root"],
        "dark": [r':root\[data-theme="dark"\]', r':root\[data-theme="auto"\]'],
    }
    return [
        dict(re.findall(r"(--(?:series|ground)[\w-]*): (#[0-9a-f]{6});", found[1]))
        for selector in selectors[theme]
        if (found := re.search(rf"^\s*{selector} \{{([^}}]*)\}}", css, re.MULTILINE))
    ]


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
