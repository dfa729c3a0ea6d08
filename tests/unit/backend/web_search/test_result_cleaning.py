"""Results as they are shown."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.web_search.domains import ANY_DOMAIN, DomainRules
from backend.web_search.result_cleaning import (
    LONGEST_SUMMARY,
    clean_results,
    parse_published,
    to_plain_text,
)
from backend.web_search.results import WebResult

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)


def make(url: str, title: str = "Title", summary: str = "Summary") -> WebResult:
    return WebResult(title, url, summary, None, "desk")


def test_equal_addresses_are_shown_once_at_their_best_place() -> None:
    found = [
        make("https://example.com/a", "first"),
        make("https://example.com/b"),
        make("http://www.example.com/a/?utm_source=x#top", "again"),
    ]
    cleaned = list(clean_results(found, ANY_DOMAIN))
    assert [(one.title, one.url) for one in cleaned] == [
        ("first", "https://example.com/a"),
        ("Title", "https://example.com/b"),
    ]


def test_what_is_no_web_address_or_not_permitted_is_left_out() -> None:
    urls = [
        "javascript:alert(1)",
        "",
        "//example.com",
        "https://ok.example.com/#x",
        "https://no.example.net/",
    ]
    rules = DomainRules.of(["example.com"], [])
    cleaned = list(clean_results(map(make, urls), rules))
    assert [one.url for one in cleaned] == ["https://ok.example.com/"]


@given(st.text("htps:/%6Dw.exampl\u4f11@[]#? \n1", max_size=25))
def test_any_address_is_shown_or_left_out(text: str) -> None:
    for url in (
        text,
        f"https://{text}",
        f"https://exa%6Dple.com/{text}",
        f" https://a.example/{text}",
    ):
        for one in clean_results([make(url)], ANY_DOMAIN):
            assert one.url.startswith(("https://", "http://"))


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<strong>leave</strong> law &amp; more", "leave law & more"),
        ("a <b>b</b>c", "a bc"),
        ("<p>One.</p><p>Two.</p>", "One. Two."),
        ("One<br/>two", "One two"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("the &lt;b&gt; element", "the <b> element"),
        ("<script>alert(1)</script>x", "alert(1)x"),
        ("<img src=x onerror='a'>text<!-- no -->", "text"),
        ("a <!-- one --> b <!-- two > --> c <!-- d", "a b c <!-- d"),
        ("<!--" * 50_000, "<!--" * 50_000),
        ("line\nbreak\t and\u200b \u202eother", "line break and other"),
        ("nul\x00", "nul\ufffd"),
    ],
)
def test_markup_is_taken_out(html: str, text: str) -> None:
    assert to_plain_text(html) == text


@given(st.text(max_size=40).map(lambda text: text * 40))
def test_any_summary_is_one_bounded_line(text: str) -> None:
    (cleaned,) = clean_results([make("https://example.com/", text, text)], ANY_DOMAIN)
    assert len(cleaned.summary) <= LONGEST_SUMMARY + 1
    assert len(cleaned.title) <= 301
    assert cleaned.title
    assert cleaned.summary == " ".join(cleaned.summary.split())


def test_long_summaries_end_at_a_word() -> None:
    (cleaned,) = clean_results([make("https://example.com/", "t", "word " * 400)], ANY_DOMAIN)
    assert cleaned.summary.endswith(" word…")
    (wide,) = clean_results([make("https://example.com/", "t", "休" * 2_000)], ANY_DOMAIN)
    assert len(wide.summary) == LONGEST_SUMMARY + 1


@pytest.mark.parametrize(
    ("stated", "moment"),
    [
        ("2026-03-02T10:00:00Z", datetime(2026, 3, 2, 10, tzinfo=UTC)),
        ("2026-03-02T10:00:00", datetime(2026, 3, 2, 10, tzinfo=UTC)),
        ("Mon, 02 Mar 2026 10:00:00 +0200", datetime(2026, 3, 2, 8, tzinfo=UTC)),
        ("Mar 2, 2026", datetime(2026, 3, 2, tzinfo=UTC)),
        ("March 2, 2026", datetime(2026, 3, 2, tzinfo=UTC)),
        ("2 days ago", NOW - timedelta(days=2)),
        ("1 hour ago", NOW - timedelta(hours=1)),
        ("2031-01-01", None),
        ("soon", None),
        ("", None),
        (7, None),
        (None, None),
        ("9999 years ago", None),
    ],
)
def test_dates_are_read_where_they_are_certain(stated: object, moment: datetime | None) -> None:
    assert parse_published(stated, NOW) == moment


@given(st.text(max_size=40))
def test_any_date_is_read_or_none(text: str) -> None:
    parse_published(text, NOW)
