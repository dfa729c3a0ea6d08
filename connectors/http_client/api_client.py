"""The base of the clients of services that offer a JSON API, and the reading of their objects.

A source derives its client from `ApiClient` and adds what is particular to its service: headers, rate
limits, the meaning of error codes, pagination.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, TypeVar

from connectors.closing import Closing
from connectors.errors import SourceAuthError, TemporarilyUnavailableError
from connectors.http_client.address_guard import AllowedNetworks
from connectors.http_client.client import WebClient
from connectors.http_client.rate_limits import (
    RateLimitReader,
    get_server_time,
    read_standard_rate_limit,
)
from connectors.http_client.request import Authorization, Params, RequestLimits
from connectors.http_client.response import (
    MalformedResponse,
    NotAuthorizedError,
    Response,
    ResponseError,
    redact_url,
)
from connectors.http_client.retry_policy import DEFAULT_RETRY_POLICY, RetryPolicy
from connectors.text_cleaning import parse_time

T = TypeVar("T")

_RETRY_AFTER = timedelta(minutes=5)
"""When to try again after a response that cannot be used."""
_MAX_MESSAGE = 200
"""Characters of a service's error message that are shown."""


class AccessDeniedError(SourceAuthError):
    """The credential is valid, but may not read this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAccount:
    """The account with which a source uses an API."""

    service: str
    """The name of the service, for messages."""
    source: str
    api_url: str
    """Without a final slash."""
    token: str = field(repr=False)
    user: str = ""
    """Sent with the token as Basic authorization; if empty, the token is sent as Bearer."""
    token_page: str
    """Where a person creates a token, for messages."""
    allowed_networks: AllowedNetworks

    @property
    def authorization(self) -> Authorization:
        if self.user:
            return Authorization.basic(self.api_url, self.user, self.token)
        return Authorization.bearer(self.api_url, self.token)

    @property
    def renewal_hint(self) -> str:
        return (
            f"create a new token ({self.token_page}) and set it with"
            f" `quarry sources edit {self.source}`"
        )


class ApiClient(Closing):
    """Requests to one API during one run, with errors that say what to do. To be closed.

    Any request raises:
        SourceAuthError: the credential is not valid; AccessDeniedError: it may not read this.
        TemporarilyUnavailableError: the service is not available now, or asks to wait.
        ResponseError: the response cannot be used.
    """

    def __init__(
        self,
        account: ApiAccount,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        read_rate_limit: RateLimitReader = read_standard_rate_limit,
        retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
    ) -> None:
        self.account = account
        self._client = WebClient(
            allowed_networks=account.allowed_networks,
            authorization=account.authorization,
            read_rate_limit=read_rate_limit,
            headers=headers,
            retry_policy=retry_policy,
        )
        self._first_response_at: datetime | None = None
        self._last_response_at: datetime | None = None

    @property
    def started_at(self) -> datetime:
        """The time of the first response, by the server's clock. Raises ValueError if there is none."""
        return _require_time(self._first_response_at)

    @property
    def now(self) -> datetime:
        """The time of the last response, by the server's clock. Raises ValueError if there is none."""
        return _require_time(self._last_response_at)

    def get(
        self,
        path: str,
        params: Params | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        limits: RequestLimits | None = None,
    ) -> Response:
        """Send a GET request to a path below the API's URL."""
        url = f"{self.account.api_url}{path}"
        with self.translate_errors():
            response = self._client.get(url, params=params, headers=headers, limits=limits)
        return self.record_time(response)

    def get_object(self, path: str, params: Params | None = None) -> dict[str, Any] | None:
        """Return the JSON object at a path, None if there is none (404, 410)."""
        response = self.get(path, params)
        return None if response.not_found else response.json_object()

    def query(
        self, url: str, json: Mapping[str, object], *, limits: RequestLimits | None = None
    ) -> Response:
        """Send a POST request that only reads."""
        with self.translate_errors():
            response = self._client.query(url, json=dict(json), limits=limits)
        return self.record_time(response)

    def cancel(self) -> None:
        """End waits and retries, now and from now on; may be called from another thread."""
        self._client.cancel()

    def abort(self) -> None:
        """Cancel as `cancel` does, and break off requests that run."""
        self._client.abort()

    def close(self) -> None:
        self._client.close()

    def record_time(self, response: Response) -> Response:
        """Note the server's time of a response, and return the response."""
        self._last_response_at = get_server_time(response)
        self._first_response_at = self._first_response_at or self._last_response_at
        return response

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn statuses 401 and 403 inside the block into the error of `auth_error`."""
        try:
            yield
        except NotAuthorizedError as error:
            raise self.auth_error(error.response) from error

    def auth_error(self, response: Response) -> SourceAuthError:
        """Return the error for status 401 or 403. Override it for a service that says more."""
        if response.status == 401:
            return self.invalid_token_error(get_error_message(response))
        return self.access_denied_error(redact_url(response.url), get_error_message(response))

    def invalid_token_error(self, reason: str) -> SourceAuthError:
        account = self.account
        return SourceAuthError(
            f"{account.service} rejects the token of {account.source} ({reason}): it has expired, was"
            f" revoked or belongs to another account; {account.renewal_hint}"
        )

    def access_denied_error(self, what: str, reason: str) -> AccessDeniedError:
        account = self.account
        return AccessDeniedError(
            f"the token of {account.source} may not read {what} ({reason}): grant it the permission,"
            f" or {account.renewal_hint}"
        )


@contextmanager
def required(what: str) -> Iterator[None]:
    """Turn a response inside the block that cannot be used into an error that ends the run.

    Args:
        what: what the run needs from the service, such as "the list of repositories".

    Raises:
        TemporarilyUnavailableError: a ResponseError was raised inside the block.
    """
    try:
        yield
    except ResponseError as error:
        raise TemporarilyUnavailableError(
            f"{what} cannot be read: {error}", _RETRY_AFTER
        ) from error


def get_error_message(response: Response) -> str:
    """Return the `message` of a JSON error, else the status."""
    try:
        message = response.json_object().get("message")
    except MalformedResponse:
        message = None
    return " ".join(str(message or f"status {response.status}")[:_MAX_MESSAGE].split())


def get_field(raw: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return a field of a JSON object.

    Raises:
        MalformedResponse: the field is missing or of another type.
    """
    value = raw.get(name)
    if not isinstance(value, kind):
        raise MalformedResponse(f"the response has an object without {name}")
    return value


def get_time(raw: Mapping[str, Any], *path: str) -> datetime:
    """Return the time (ISO 8601) at a path of nested objects, in UTC.

    Raises:
        MalformedResponse: there is no time.
    """
    moment = parse_time(find_text(raw, *path))
    if moment is None:
        raise MalformedResponse(f"the response has an object without a valid {path[-1]}")
    return moment


def find_value(raw: Mapping[str, Any], *path: str) -> Any:
    """Return the value at a path of nested objects, None if an object is missing on the way."""
    found: Any = raw
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def find_text(raw: Mapping[str, Any], *path: str) -> str:
    """Return the text or number at a path of nested objects as text, empty if there is none."""
    found = find_value(raw, *path)
    return str(found) if isinstance(found, str | int) else ""


def check_objects(values: list[Any]) -> list[dict[str, Any]]:
    """Return the list if all of its items are JSON objects.

    Raises:
        MalformedResponse: an item is something else.
    """
    if not all(isinstance(one, dict) for one in values):
        raise MalformedResponse("the response has a list with items that are not objects")
    return values


def _require_time(moment: datetime | None) -> datetime:
    if moment is None:
        raise ValueError("no response has arrived yet")
    return moment
