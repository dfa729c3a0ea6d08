"""Classification of the outcome of an attempt: a response, an error, or a reason to retry."""

import random
from dataclasses import dataclass
from datetime import timedelta

import httpx

from connectors.http_client.rate_limits import RateLimitReader
from connectors.http_client.response import (
    ClientError,
    NotAuthorizedError,
    RateLimitedError,
    Response,
    ServerError,
    ServiceUnavailableError,
    redact_url,
)

_RETRY_AFTER = timedelta(seconds=60)
"""When to try again a service that does not respond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How one request is retried before it is left to a later run.

    The delay before the n-th retry is drawn evenly between 0 and base_delay * 2**(n - 1) seconds
    ("full jitter"), unless the service states a wait.
    """

    max_attempts: int = 4
    base_delay: float = 0.3
    max_total_delay: float = 10.0
    """Seconds slept in all for one request; a stated wait that does not fit raises RateLimitedError."""

    def draw_delay(self, retry: int) -> float:
        """Return the seconds to sleep before the first retry (1), the second (2) and so on."""
        return random.uniform(0.0, self.base_delay * 2.0 ** (retry - 1))


DEFAULT_RETRY_POLICY = RetryPolicy()


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """Why there is no usable response yet."""

    error: RateLimitedError | ServiceUnavailableError
    stated_wait: timedelta | None = None
    """The wait that the service asks for."""
    not_processed: bool = False
    """The service has certainly not processed the request."""


def classify_error(url: httpx.URL, error: httpx.TransportError) -> FailedAttempt:
    """Classify a request that found no connection, or whose connection broke or timed out."""
    unavailable = ServiceUnavailableError(
        f"{redact_url(url)} does not respond: {error}", _RETRY_AFTER
    )
    unavailable.__cause__ = error
    return FailedAttempt(unavailable, not_processed=isinstance(error, httpx.ConnectError))


def classify_response(
    response: Response, read_rate_limit: RateLimitReader
) -> Response | FailedAttempt:
    """Return the response if it can be used, else why the request should be retried.

    Raises:
        NotAuthorizedError: 401 or 403.
        ClientError: another 4xx except 404 and 410, or 501 or 505.
    """
    wait = read_rate_limit(response)
    if wait is not None:
        return FailedAttempt(_rate_limited(response, wait), wait, not_processed=True)
    url, status = redact_url(response.url), response.status
    match status:
        case 401 | 403:
            raise NotAuthorizedError(
                f"{url} denies access (status {status}): check the credential of the source"
                " and its permissions",
                response,
            )
        case 408 | 425:
            return FailedAttempt(_server_error(response), not_processed=True)
        case 501 | 505:
            raise ClientError(f"{url} does not support such requests (status {status})", response)
        case _ if status >= 500:
            return FailedAttempt(_server_error(response))
        case _ if status >= 400 and not response.not_found:
            raise ClientError(f"{url} rejects the request (status {status})", response)
        case _:
            return response


def _rate_limited(response: Response, wait: timedelta) -> RateLimitedError:
    return RateLimitedError(
        f"{redact_url(response.url)} asks to wait {wait.total_seconds():g} s before the next request"
        f" (status {response.status})",
        wait,
    )


def _server_error(response: Response) -> ServerError:
    message = f"{redact_url(response.url)} reports an error (status {response.status})"
    return ServerError(message, _RETRY_AFTER, response)
