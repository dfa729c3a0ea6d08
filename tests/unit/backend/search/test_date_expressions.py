"""Dates in a query: what is read as one, what is not, and that any text is read."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.search.date_expressions import DateExpression, find_dates

TODAY = date(2026, 11, 23)
"""A Monday."""


def read(text: str) -> list[tuple[str, str | None, str | None]]:
    """The words of each date, its first day, and the day after its last."""

    def day(moment: datetime | None) -> str | None:
        return moment.date().isoformat() if moment else None

    return [
        (one.span.of(text), day(one.dates.since), day(one.dates.until))
        for one in find_dates(text, TODAY)
    ]


@pytest.mark.parametrize(
    ("text", "words", "since", "until"),
    [
        ("parental leave in January 2026", "in January 2026", "2026-01-01", "2026-02-01"),
        ("offsite, Jan. 2026", "Jan. 2026", "2026-01-01", "2026-02-01"),
        ("notes from March", "from March", "2026-03-01", "2026-04-01"),
        ("notes from December", "from December", "2025-12-01", "2026-01-01"),
        ("who spoke on 5 March 2026", "on 5 March 2026", "2026-03-05", "2026-03-06"),
        ("travel March 5th, 2026 offsite", "March 5th, 2026", "2026-03-05", "2026-03-06"),
        ("log of 2026-03-05", "of 2026-03-05", "2026-03-05", "2026-03-06"),
        ("budget in 2019", "in 2019", "2019-01-01", "2020-01-01"),
        ("revenue in 2025 by region", "in 2025", "2025-01-01", "2026-01-01"),
        ("changes since 2024", "since 2024", "2024-01-01", None),
        ("changes after May 2025", "after May 2025", "2025-06-01", None),
        ("rules before 2020", "before 2020", None, "2020-01-01"),
        ("rules until 2020", "until 2020", None, "2021-01-01"),
        ("Q3 2025 results", "Q3 2025", "2025-07-01", "2025-10-01"),
        ("the third quarter of 2025", "third quarter of 2025", "2025-07-01", "2025-10-01"),
        ("last quarter", "last quarter", "2026-07-01", "2026-10-01"),
        ("what was decided last autumn", "last autumn", "2025-09-01", "2025-12-01"),
        ("last summer", "last summer", "2026-06-01", "2026-09-01"),
        ("party in the winter of 2025", "in the winter of 2025", "2025-12-01", "2026-03-01"),
        ("yesterday's incident", "yesterday", "2026-11-22", "2026-11-23"),
        ("decisions of last week", "of last week", "2026-11-16", "2026-11-23"),
        ("last month", "last month", "2026-10-01", "2026-11-01"),
        ("last 3 weeks", "last 3 weeks", "2026-11-02", "2026-11-24"),
        ("Beschlüsse im Januar 2026", "im Januar 2026", "2026-01-01", "2026-02-01"),
        ("am 5. März 2026 besprochen", "am 5. März 2026", "2026-03-05", "2026-03-06"),
        ("seit letzter Woche", "seit letzter Woche", "2026-11-16", None),
        ("letzten Herbst", "letzten Herbst", "2025-09-01", "2025-12-01"),
        ("2026年1月の会議", "2026年1月", "2026-01-01", "2026-02-01"),
        ("上个月的报告", "上个月", "2026-10-01", "2026-11-01"),
        ("昨年の秋の決定", "昨年の秋", "2025-09-01", "2025-12-01"),
        ("先週の議事録", "先週", "2026-11-16", "2026-11-23"),
    ],
)
def test_dates_are_read(text: str, words: str, since: str | None, until: str | None) -> None:
    assert read(text) == [(words, since, until)]


@pytest.mark.parametrize(
    "text",
    [
        "who may approve expenses",
        "may I march",
        "budget of 2019",
        "salary bands 2026",
        "in 2019 budget",
        "after 2000 hours of operation",
        "in 2199",
        "E-2026 in the machines",
        "from 2020 to 2024",
        "the last week of January",
        "31. Februar 2026",
        "2026年99月",
        "on 2026-13-45",
        "fall of the tower",
        "a last resort",
    ],
)
def test_what_may_be_something_else_is_no_date(text: str) -> None:
    assert read(text) == []


def names(text: str) -> frozenset[str]:
    (one,) = find_dates(text, TODAY)
    return one.names


def test_words_that_name_the_time_are_told_where_a_text_may_hold_them() -> None:
    assert names("in January 2026") == {"january", "2026"}
    assert names("in 2025") == {"2025"} == names("last year")
    assert names("since 2025") == names("last week") == frozenset()


@given(
    st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(
                [
                    "in",
                    "since",
                    "last",
                    "the",
                    "2026",
                    "9999",
                    "0",
                    "January",
                    "may",
                    "Q4",
                    "of",
                    "5.",
                    "年",
                    "月",
                    "去年の",
                    "秋",
                    "winter",
                    "quarter",
                    "-",
                    "week",
                    ",",
                    "",
                ]
            )
        ).map(" ".join),
    )
)
def test_any_text_is_read_and_dates_stand_in_it(text: str) -> None:
    end = 0
    for one in sorted(find_dates(text, TODAY), key=lambda one: one.span):
        assert isinstance(one, DateExpression)
        assert end <= one.span.start < one.span.end <= len(text)
        end = one.span.end
        since, until = one.dates.since, one.dates.until
        assert since or until
        assert (since or datetime.min.replace(tzinfo=UTC)) < (
            until or datetime.max.replace(tzinfo=UTC)
        )
