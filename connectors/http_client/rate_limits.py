"""How long a service asks to wait, read from the headers of its responses."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TypeAlias

from connectors.http_client.response import Response

RateLimitReader: TypeAlias = Callable[[Response], timedelta | None]
"""Returns how long to wait before the next request, or None if the response is not a rate limit.

It is called with every response of any status, before the status is looked at. A service with headers
of its own has a reader in its source, which falls back on `read_standard_rate_limit`.
"""

DEFAULT_WAIT = timedelta(seconds=60)
"""The wait if a service reports a rate limit without saying how long."""
MAX_WAIT = timedelta(days=7)
"""Longer stated waits are cut to this: a service that asks for years is mistaken."""

_RESET_HEADERS = ("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset")
_MIN_TIMESTAMP = 1e9
"""A number of seconds above it is a Unix time, one below it a duration."""


def read_standard_rate_limit(response: Response) -> timedelta | None:
    """Read status 429, and 503 with Retry-After (RFC 9110, 10.2.3): seconds, or a date.

    Without Retry-After: RateLimit-Reset and X-RateLimit-Reset, in seconds, as Unix time or as a date,
    as GitLab, Slack and many others send it. Dates are compared with the clock of the server.
    """
    if response.status == 429:
        return read_wait(response, "retry-after", *_RESET_HEADERS)
    return _find_wait(response, "retry-after") if response.status == 503 else None


def read_wait(response: Response, *names: str) -> timedelta:
    """Return the wait of the first of these headers that can be parsed, else the default wait."""
    wait = _find_wait(response, *names)
    return DEFAULT_WAIT if wait is None else wait


def get_server_time(response: Response) -> datetime:
    """Return the Date header: other times in the response are by that clock too. Else our clock."""
    return _parse_date(response.headers.get("date", "")) or datetime.now(UTC)


def _find_wait(response: Response, *names: str) -> timedelta | None:
    for name in names:
        if (text := response.headers.get(name, "").strip()) and (
            wait := _parse_wait(text, get_server_time(response))
        ) is not None:
            return max(timedelta(0), min(wait, MAX_WAIT))
    return None


def _parse_wait(text: str, now: datetime) -> timedelta | None:
    if re.fullmatch(r"\d{1,15}(\.\d{0,9})?", text):
        seconds = float(text)
        wait = seconds - now.timestamp() if seconds > _MIN_TIMESTAMP else seconds
        return timedelta(seconds=math.ceil(min(wait, MAX_WAIT.total_seconds()) * 1000) / 1000)
    date = _parse_date(text)
    return None if date is None else date - now


def _parse_date(text: str) -> datetime | None:
    """Parse an HTTP date or an ISO 8601 date; without a time zone it is UTC."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = parse(text)
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None
