"""The response of a service, and the errors for responses that cannot be used."""

import json
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import Message
from typing import Any

import httpx

from connectors.errors import SourceAuthError, SourceError, TemporarilyUnavailableError


class ResponseError(Exception):
    """The response cannot be used.

    If it concerns one item, the source yields an `Unreadable`. If the run cannot continue without it
    (a page of a listing), the source raises a TemporarilyUnavailableError or an ActionRequiredError.
    """


class MalformedResponse(ResponseError):
    """The response is not in the expected format: not JSON, cut off, of another shape, a page loop."""


class TooManyRedirects(MalformedResponse):
    """There are more than `RequestLimits.max_redirects`, or they lead in a circle."""


class ResponseTooLarge(ResponseError):
    """The decompressed body is larger than `RequestLimits.max_bytes`."""


class ClientError(ResponseError):
    """The service rejects the request: status 4xx without an error class of its own, 501 or 505."""

    def __init__(self, message: str, response: "Response") -> None:
        super().__init__(message)
        self.response = response


class NotAuthorizedError(SourceAuthError):
    """Status 401 or 403 that is not a rate limit.

    A source catches it to say where to create a new credential, or, if a 403 concerns only one item,
    to yield an `Unreadable`.
    """

    def __init__(self, message: str, response: "Response") -> None:
        super().__init__(message)
        self.response = response


class CertificateError(SourceError):
    """The TLS certificate of the server is not trusted or is for another host."""


class RateLimitedError(TemporarilyUnavailableError):
    """The service asks to wait; `retry_after` is exactly the wait it asks for."""


class ServiceUnavailableError(TemporarilyUnavailableError):
    """No response, or a server error (`ServerError`), after all attempts."""


class ServerError(ServiceUnavailableError):
    """The service reports that it failed: 408, 425, 5xx except 501 and 505, or an error in its body.

    If the service fails again and again for one item only, a source may yield an `Unreadable`.
    """

    def __init__(
        self, message: str, retry_after: timedelta, response: "Response | None" = None
    ) -> None:
        super().__init__(message, retry_after)
        self.response = response


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A complete response: 2xx, 304, 404, 410, or a redirect if none may be followed."""

    status: int
    headers: httpx.Headers
    """Case-insensitive: `response.headers.get("etag")`."""
    body: bytes = field(repr=False)
    """Decompressed."""
    url: str
    """The final URL, after all redirects."""

    @property
    def not_found(self) -> bool:
        return self.status in {404, 410}

    @property
    def media_type(self) -> str:
        """The content type in lower case without parameters; empty if the server sent none."""
        return str(self.headers.get("content-type", "")).partition(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The encoding that the server declares."""
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        return message.get_content_charset()

    @property
    def text(self) -> str:
        """The body decoded by the charset of the server, else as UTF-8; invalid bytes become U+FFFD."""
        charset = self.charset or "utf-8"
        try:
            # Python's encodings of names of hosts cannot replace bytes, and take quadratic time.
            b"\xff".decode(charset, "replace")
            return self.body.decode(charset, "replace")
        except (LookupError, UnicodeError):
            return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Parse the body as JSON.

        Raises:
            MalformedResponse: the body is not JSON.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            media_type = self.media_type or "no content type"
            raise MalformedResponse(
                f"{redact_url(self.url)} did not respond in JSON ({media_type})"
            ) from error

    def json_object(self) -> dict[str, Any]:
        """Parse the body as a JSON object.

        Raises:
            MalformedResponse: the body is not a JSON object.
        """
        match self.json():
            case dict() as value:
                return value
            case other:
                raise self._unexpected_type(other, "an object")

    def json_list(self) -> list[Any]:
        """Parse the body as a JSON array.

        Raises:
            MalformedResponse: the body is not a JSON array.
        """
        match self.json():
            case list() as value:
                return value
            case other:
                raise self._unexpected_type(other, "a list")

    def _unexpected_type(self, value: object, expected: str) -> MalformedResponse:
        return MalformedResponse(
            f"{redact_url(self.url)} responded with a {type(value).__name__}, not {expected}"
        )


def redact_url(url: str | httpx.URL) -> str:
    """Return the URL without query and fragment, which may hold secrets, for messages and logs."""
    return str(httpx.URL(url).copy_with(query=None, fragment=None))
