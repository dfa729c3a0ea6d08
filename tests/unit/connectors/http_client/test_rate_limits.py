from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.http_client.rate_limits import (
    LONGEST,
    UNSAID,
    Pace,
    Patience,
    atlassian_pace,
    github_pace,
    standard_pace,
)
from connectors.http_client.response import Answer

# The server's clock; ours may show anything else.
SERVER = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
DATE = {"Date": format_datetime(SERVER, usegmt=True)}
RESET = str(int(SERVER.timestamp()) + 90)


def _answer(status: int, headers: Mapping[str, str], body: bytes = b"") -> Answer:
    return Answer(
        status=status, headers=httpx.Headers(dict(headers)), body=body, url="https://a.example/b"
    )


def _seconds(pace: Pace, answer: Answer) -> float | None:
    wait = pace(answer)
    return None if wait is None else wait.total_seconds()


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {"Retry-After": "37"}, 37),
        (429, {"Retry-After": "0"}, 0),
        (429, {"Retry-After": "1.5"}, 1.5),
        (429, {"Retry-After": "Tue, 06 May 2031 07:10:09 GMT"}, 120),
        (429, {"Retry-After": "Tuesday, 06-May-31 07:10:09 GMT"}, 120),
        (429, {"Retry-After": "Tue May  6 07:10:09 2031"}, 120),
        (429, {"Retry-After": "Tue, 06 May 2031 07:00:00 GMT"}, 0),
        (429, {"RateLimit-Reset": "55"}, 55),
        (429, {"RateLimit-Reset": RESET}, 90),
        (429, {"X-RateLimit-Reset": RESET}, 90),
        (429, {"X-Rate-Limit-Reset": RESET}, 90),
        (429, {"X-RateLimit-Reset": "2031-05-06T07:09Z"}, 51),
        (429, {"Retry-After": "5", "X-RateLimit-Reset": RESET}, 5),
        (429, {"Retry-After": "soon", "X-RateLimit-Reset": RESET}, 90),
        (429, {}, UNSAID.total_seconds()),
        (429, {"Retry-After": "-1"}, UNSAID.total_seconds()),
        (429, {"Retry-After": "9" * 15}, LONGEST.total_seconds()),
        (429, {"Retry-After": "9" * 400}, UNSAID.total_seconds()),
        (429, {"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST.total_seconds()),
        (503, {"Retry-After": "120"}, 120),
        (503, {}, None),
        (500, {"Retry-After": "120"}, None),
        (403, {"X-RateLimit-Remaining": "0"}, None),
        (200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": RESET}, None),
    ],
)
def test_the_usual_headers(status: int, headers: dict[str, str], seconds: float | None) -> None:
    assert _seconds(standard_pace, _answer(status, DATE | headers)) == seconds


@pytest.mark.parametrize(
    ("status", "headers", "body", "seconds"),
    [
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": RESET}, b"", 90),
        (429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": RESET}, b"", 90),
        # What is left of the hour does not matter to the secondary limit.
        (403, {"X-RateLimit-Remaining": "4000", "X-RateLimit-Reset": RESET}, b"", None),
        (403, {"Retry-After": "17", "X-RateLimit-Reset": RESET}, b"", 17),
        (
            403,
            {"X-RateLimit-Remaining": "4000", "X-RateLimit-Reset": RESET},
            b'{"message": "You have exceeded a secondary rate limit."}',
            UNSAID.total_seconds(),
        ),
        (403, {}, b'{"message": "Resource not accessible by integration"}', None),
        (
            200,
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": RESET},
            b'{"errors": [{"type": "RATE_LIMITED"}]}',
            90,
        ),
        (200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": RESET}, b'{"data": {}}', None),
        (503, {"Retry-After": "3"}, b"", 3),
        (401, {"X-RateLimit-Remaining": "0"}, b"", None),
    ],
)
def test_github(status: int, headers: dict[str, str], body: bytes, seconds: float | None) -> None:
    assert _seconds(github_pace, _answer(status, DATE | headers, body)) == seconds


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {"Retry-After": "5", "X-RateLimit-Reset": "2031-05-06T07:09Z"}, 5),
        (429, {"X-RateLimit-Reset": "2031-05-06T07:09Z"}, 51),
        (429, {"X-RateLimit-NearLimit": "true"}, UNSAID.total_seconds()),
        (503, {"X-RateLimit-Reset": "2031-05-06T07:09Z"}, 51),
        (503, {"Retry-After": "8"}, 8),
        (503, {}, None),
        (200, {"X-RateLimit-NearLimit": "true"}, None),
        (403, {}, None),
    ],
)
def test_atlassian(status: int, headers: dict[str, str], seconds: float | None) -> None:
    assert _seconds(atlassian_pace, _answer(status, DATE | headers)) == seconds


def test_without_a_date_our_own_clock_counts() -> None:
    reset = datetime.now(UTC) + timedelta(seconds=500)
    wait = standard_pace(_answer(429, {"X-RateLimit-Reset": f"{reset.timestamp():.3f}"}))
    assert wait is not None
    assert timedelta(seconds=400) < wait <= timedelta(seconds=501)


@given(
    st.sampled_from([403, 429, 503]),
    st.dictionaries(
        st.sampled_from(["retry-after", "ratelimit-reset", "x-ratelimit-reset", "date"]),
        st.text(st.characters(codec="latin-1"), max_size=40)
        | st.integers().map(str)
        | st.floats().map(str)
        | st.datetimes().map(str),
    ),
    st.sampled_from([standard_pace, github_pace, atlassian_pace]),
)
def test_no_header_breaks_it(status: int, headers: dict[str, str], pace: Pace) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    answer = Answer(status=status, headers=httpx.Headers(raw), body=b"", url="https://a.example/")
    wait = pace(answer)
    assert wait is None or timedelta(0) <= wait <= LONGEST


def test_jitter_is_full_and_doubles() -> None:
    patience = Patience(first=0.5)
    for repetition, most in ((1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0)):
        drawn = [patience.drawn(repetition) for _ in range(400)]
        assert 0 <= min(drawn) < 0.1 * most
        assert 0.9 * most < max(drawn) <= most
