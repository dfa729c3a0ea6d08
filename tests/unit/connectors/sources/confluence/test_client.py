from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime

import httpx
import pytest

from connectors.http_client.rate_limits import DEFAULT_WAIT
from connectors.http_client.response import Response
from connectors.sources.confluence.client import read_atlassian_rate_limit

SERVER_TIME = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
DATE = {"Date": format_datetime(SERVER_TIME, usegmt=True)}


def _read_wait(status: int, headers: Mapping[str, str], body: bytes = b"") -> float | None:
    all_headers = httpx.Headers(DATE | dict(headers))
    response = Response(status=status, headers=all_headers, body=body, url="https://a.example/b")
    wait = read_atlassian_rate_limit(response)
    return None if wait is None else wait.total_seconds()


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {"Retry-After": "5", "X-RateLimit-Reset": "2031-05-06T07:09Z"}, 5),
        (429, {"X-RateLimit-Reset": "2031-05-06T07:09Z"}, 51),
        (429, {"X-RateLimit-NearLimit": "true"}, DEFAULT_WAIT.total_seconds()),
        (503, {"X-RateLimit-Reset": "2031-05-06T07:09Z"}, 51),
        (503, {"Retry-After": "8"}, 8),
        (503, {}, None),
        (200, {"X-RateLimit-NearLimit": "true"}, None),
        (403, {}, None),
    ],
)
def test_rate_limits(status: int, headers: dict[str, str], seconds: float | None) -> None:
    assert _read_wait(status, headers) == seconds
