"""Intervals parsed from text and formatted as text."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.sources.intervals import LONGEST, NEVER, SHORTEST, format_interval, parse_interval


@pytest.mark.parametrize(
    ("text", "every"),
    [
        ("90s", timedelta(seconds=90)),
        (" 15 M ", timedelta(minutes=15)),
        ("6h", timedelta(hours=6)),
        ("30d", timedelta(days=30)),
        ("never", NEVER),
        ("usual", None),
    ],
)
def test_an_interval_is_read(text: str, every: timedelta | None) -> None:
    assert parse_interval(text) == every


@pytest.mark.parametrize(
    "text", ["", "0", "0m", "15", "m", "-5m", "1w", "59s", "31d", "9999999999d"]
)
def test_what_is_none_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match=r"use 90s|between a minute and 30 days"):
        parse_interval(text)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "never"),
        (90, "every 90 seconds"),
        (60, "every minute"),
        (5_400, "every 90 minutes"),
        (86_400, "every day"),
        (172_800, "every 2 days"),
    ],
)
def test_an_interval_is_spoken_in_the_largest_whole_unit(seconds: int, expected: str) -> None:
    assert format_interval(timedelta(seconds=seconds)) == expected


@given(st.integers(int(SHORTEST.total_seconds()), int(LONGEST.total_seconds())))
def test_what_is_written_in_seconds_is_that_many(seconds: int) -> None:
    assert parse_interval(f"{seconds}s") == timedelta(seconds=seconds)
