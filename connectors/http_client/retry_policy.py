"""What an answer means for the one who asked: an answer, an error, or a reason to ask again."""

from dataclasses import dataclass
from datetime import timedelta

import httpx

from connectors.http_client.rate_limits import Pace
from connectors.http_client.response import (
    Answer,
    Failing,
    NotAuthorised,
    RateLimited,
    Rejected,
    Unavailable,
    spoken,
)

_LATER = timedelta(seconds=60)
"""When to ask again a service that does not answer."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why there is no answer yet."""

    error: RateLimited | Unavailable
    stated: timedelta | None = None
    """The wait that the service asks for."""
    undone: bool = False
    """The request has surely not been done."""


def unanswered(url: httpx.URL, error: httpx.TransportError) -> Trouble:
    """Of a request that found no connection, or whose connection broke or took too long."""
    told = Unavailable(f"{spoken(url)} does not answer: {error}", _LATER)
    told.__cause__ = error
    return Trouble(told, undone=isinstance(error, httpx.ConnectError))


def judged(answer: Answer, pace: Pace) -> Answer | Trouble:
    """
    Raises:
        NotAuthorised: 401 or 403.
        Rejected: another 4xx but 404 and 410, or 501 or 505.
    """
    wait = pace(answer)
    if wait is not None:
        return Trouble(_limited(answer, wait), wait, undone=True)
    where, status = spoken(answer.url), answer.status
    match status:
        case 401 | 403:
            raise NotAuthorised(
                f"{where} refuses access (status {status}): check the credential of the source"
                " and what it may read",
                answer,
            )
        case 408 | 425:
            return Trouble(_failing(answer), undone=True)
        case 501 | 505:
            raise Rejected(f"{where} does not know such requests (status {status})", answer)
        case _ if status >= 500:
            return Trouble(_failing(answer))
        case _ if status >= 400 and not answer.gone:
            raise Rejected(f"{where} does not take the request (status {status})", answer)
        case _:
            return answer


def _limited(answer: Answer, wait: timedelta) -> RateLimited:
    seconds = f"{wait.total_seconds():g}"
    return RateLimited(
        f"{spoken(answer.url)} asks to wait {seconds} s before the next request"
        f" (status {answer.status})",
        wait,
    )


def _failing(answer: Answer) -> Failing:
    return Failing(f"{spoken(answer.url)} fails (status {answer.status})", _LATER)
