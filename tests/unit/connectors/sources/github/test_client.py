from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime

import httpx
import pytest

from connectors.http_client.rate_limits import DEFAULT_WAIT
from connectors.http_client.response import Response
from connectors.sources.github.client import read_github_rate_limit

SERVER_TIME = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
DATE = {"Date": format_datetime(SERVER_TIME, usegmt=True)}
RESET = str(int(SERVER_TIME.timestamp()) + 90)


def _read_wait(status: int, headers: Mapping[str, str], body: bytes = b"") -> float | None:
    all_headers = httpx.Headers(DATE | dict(headers))
    response = Response(status=status, headers=all_headers, body=body, url="https://a.example/b")
    wait = read_github_rate_limit(response)
    return None if wait is None else wait.total_seconds()


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
            DEFAULT_WAIT.total_seconds(),
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
def test_rate_limits(
    status: int, headers: dict[str, str], body: bytes, seconds: float | None
) -> None:
    assert _read_wait(status, headers, body) == seconds
