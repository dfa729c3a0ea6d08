from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.http_client.rate_limits import DEFAULT_WAIT, MAX_WAIT, read_standard_rate_limit
from connectors.http_client.response import Response

# The server's clock; ours may show anything else.
SERVER = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
DATE = {"Date": format_datetime(SERVER, usegmt=True)}
RESET = str(int(SERVER.timestamp()) + 90)


def _response(status: int, headers: Mapping[str, str], body: bytes = b"") -> Response:
    return Response(
        status=status, headers=httpx.Headers(dict(headers)), body=body, url="https://a.example/b"
    )


def _seconds(response: Response) -> float | None:
    wait = read_standard_rate_limit(response)
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
        (429, {}, DEFAULT_WAIT.total_seconds()),
        (429, {"Retry-After": "-1"}, DEFAULT_WAIT.total_seconds()),
        (429, {"Retry-After": "9" * 15}, MAX_WAIT.total_seconds()),
        (429, {"Retry-After": "9" * 400}, DEFAULT_WAIT.total_seconds()),
        (429, {"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, MAX_WAIT.total_seconds()),
        (503, {"Retry-After": "120"}, 120),
        (503, {}, None),
        (500, {"Retry-After": "120"}, None),
        (403, {"X-RateLimit-Remaining": "0"}, None),
        (200, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": RESET}, None),
    ],
)
def test_the_usual_headers(status: int, headers: dict[str, str], seconds: float | None) -> None:
    assert _seconds(_response(status, DATE | headers)) == seconds


def test_without_a_date_our_own_clock_counts() -> None:
    reset = datetime.now(UTC) + timedelta(seconds=500)
    wait = read_standard_rate_limit(
        _response(429, {"X-RateLimit-Reset": f"{reset.timestamp():.3f}"})
    )
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
)
def test_no_header_breaks_it(status: int, headers: dict[str, str]) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    response = Response(
        status=status, headers=httpx.Headers(raw), body=b"", url="https://a.example/"
    )
    wait = read_standard_rate_limit(response)
    assert wait is None or timedelta(0) <= wait <= MAX_WAIT
