"""How long a service asks to wait: its own headers, read by one function for each way of saying it."""

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TypeAlias

from connectors.http_client.response import Answer

Pace: TypeAlias = Callable[[Answer], timedelta | None]
"""How long to wait before asking again; none where the answer is not about the pace at all.

It is called with every answer of any status, before anything else looks at it. A service with a way
of its own is served by a function of its source that falls back on one of these.
"""

UNSAID = timedelta(seconds=60)
"""The wait where a service says that it is too much but not for how long."""
LONGEST = timedelta(days=7)
"""No stated wait counts for more: what asks for years is a mistake."""

_RESETS = ("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset")
_SINCE_1970 = 1e9
"""A number of seconds above it is a moment since 1970, one below it a wait."""
_GRAPHQL_LIMIT = re.compile(rb'"type"\s*:\s*"RATE_LIMITED"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How one request is repeated before it is left to a later run.

    The wait before the n-th repetition is drawn evenly between 0 and first * 2**(n - 1) seconds
    ("full jitter"), unless the service states one.
    """

    tries: int = 4
    first: float = 0.3
    longest: float = 10.0
    """Seconds slept in all for one request; a stated wait that does not fit raises RateLimited."""

    def drawn(self, repetition: int) -> float:
        """Seconds before the first repetition (1), the second (2) and so on."""
        return random.uniform(0.0, self.first * 2.0 ** (repetition - 1))


PATIENCE = Patience()


def standard_pace(answer: Answer) -> timedelta | None:
    """Status 429, and 503 with Retry-After (RFC 9110, 10.2.3): seconds, or a date by the server's own clock.

    Without Retry-After: RateLimit-Reset and X-RateLimit-Reset, in seconds or as seconds since 1970
    or as a date, as GitLab, Slack and many others do.
    """
    if answer.status == 429:
        return _or_unsaid(_stated(answer, "retry-after", *_RESETS))
    return _stated(answer, "retry-after") if answer.status == 503 else None


def github_pace(answer: Answer) -> timedelta | None:
    """GitHub: 403 and 429 for its primary limit (X-RateLimit-Remaining: 0 with X-RateLimit-Reset since
    1970) and its secondary limits, and a GraphQL answer of type RATE_LIMITED under status 200."""
    if not _github_limits(answer):
        return standard_pace(answer)
    spent = answer.headers.get("x-ratelimit-remaining") == "0"
    names = ("retry-after", "x-ratelimit-reset") if spent else ("retry-after",)
    return _or_unsaid(_stated(answer, *names))


def _github_limits(answer: Answer) -> bool:
    match answer.status:
        case 200:
            return bool(_GRAPHQL_LIMIT.search(answer.body[:4096]))
        case 403 | 429:
            return (
                "retry-after" in answer.headers
                or answer.headers.get("x-ratelimit-remaining") == "0"
                or b"rate limit" in answer.body[:4096].lower()
            )
        case _:
            return False


def atlassian_pace(answer: Answer) -> timedelta | None:
    """Confluence and Jira: 429, and 503, with Retry-After in seconds, else X-RateLimit-Reset as an
    ISO 8601 date."""
    if answer.status == 429 or (answer.status == 503 and "x-ratelimit-reset" in answer.headers):
        return _or_unsaid(_stated(answer, "retry-after", "x-ratelimit-reset"))
    return standard_pace(answer)


def _or_unsaid(wait: timedelta | None) -> timedelta:
    return UNSAID if wait is None else wait


def _stated(answer: Answer, *names: str) -> timedelta | None:
    """What the first of these headers that can be read asks for."""
    for name in names:
        if (text := answer.headers.get(name, "").strip()) and (
            wait := _wait(text, server_time(answer))
        ) is not None:
            return max(timedelta(0), min(wait, LONGEST))
    return None


def _wait(text: str, now: datetime) -> timedelta | None:
    if re.fullmatch(r"\d{1,15}(\.\d{0,9})?", text):
        seconds = float(text)
        waited = seconds - now.timestamp() if seconds > _SINCE_1970 else seconds
        return timedelta(seconds=math.ceil(min(waited, LONGEST.total_seconds()) * 1000) / 1000)
    moment = _moment(text)
    return None if moment is None else moment - now


def _moment(text: str) -> datetime | None:
    """An HTTP date, or one of ISO 8601; without a zone it is UTC."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(text)
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def server_time(answer: Answer) -> datetime:
    """By the server's own clock where it says so: the moments it names are by that clock too."""
    return _moment(answer.headers.get("date", "")) or datetime.now(UTC)
