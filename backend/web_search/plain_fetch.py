"""Fetch the HTML of a page without a browser: through the address guard, as the server sends it."""

from connectors.errors import SourceError
from connectors.http_client.address_guard import (
    PUBLIC_ONLY,
    AddressNotAllowedError,
    AllowedNetworks,
)
from connectors.http_client.client import WebClient
from connectors.http_client.request import MEBIBYTE, RequestLimits
from connectors.http_client.response import ResponseError
from connectors.http_client.retry_policy import RetryPolicy
from connectors.http_client.transport import request_timeout
from indexing.runtime.deadline import Deadline

_LIMITS = RequestLimits(max_bytes=5 * MEBIBYTE, connect=5.0)
_ONCE = RetryPolicy(max_attempts=1)
_HEADERS = {"Accept": "text/html,application/xhtml+xml"}


def fetch_html(url: str, deadline: Deadline, allowed: AllowedNetworks = PUBLIC_ONLY) -> str:
    """Return the HTML of a page, before its scripts have run.

    Raises:
        SourceError: the server refuses, or answers with something else.
        TemporarilyUnavailableError: it does not answer.
        DeadlineExceededError: the time is up.
    """
    deadline.check()
    with (
        request_timeout(deadline.remaining()),
        WebClient(allowed_networks=allowed, retry_policy=_ONCE, limits=_LIMITS) as client,
    ):
        try:
            response = client.get(url, headers=_HEADERS)
        except ResponseError as error:
            raise SourceError(f"{error}.") from error
        except AddressNotAllowedError as error:
            # No setting allows it, as the guard says of sources.
            reason = str(error).partition(" To allow it")[0]
            raise AddressNotAllowedError(reason) from error
    if response.not_found or "html" not in response.media_type:
        raise SourceError(f"There is no HTML page at this address (status {response.status}).")
    return response.text
