"""What a service answered, and the answers that are none."""

import json
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

import httpx

from connectors.errors import ActionRequiredError, TemporarilyUnavailableError


class BadAnswer(Exception):
    """An answer that cannot be used as it is.

    Of one item it is a reason to yield an `Unreadable`. What a run cannot do without (a page of the
    listing) is a TemporarilyUnavailableError or an ActionRequiredError that the source raises instead.
    """


class Malformed(BadAnswer):
    """It is not in the format it should be: no JSON, cut off, of another shape, pages in a circle."""


class TooLarge(BadAnswer):
    """It is larger than `Bounds.most_bytes`, counted as it is unpacked."""


class Rejected(BadAnswer):
    """The service does not take the request: a status of 4xx that has no error of its own, 501 or 505."""

    def __init__(self, message: str, answer: "Answer") -> None:
        super().__init__(message)
        self.answer = answer


class NotAuthorised(ActionRequiredError):
    """Status 401 or 403, where no rate limit is behind it.

    A source catches it and says in its own words where to make a new credential, or, where 403 is
    about one item only, yields an `Unreadable`.
    """

    def __init__(self, message: str, answer: "Answer") -> None:
        super().__init__(message)
        self.answer = answer


class BadCertificate(ActionRequiredError):
    """The server does not prove to be the one that was asked."""


class RateLimited(TemporarilyUnavailableError):
    """The service asks to wait; `after` is what it asks for, exactly."""


class Unavailable(TemporarilyUnavailableError):
    """No answer, or an answer that it fails (`Failing`), several times."""


class Failing(Unavailable):
    """It answers that it fails: by 408, 425 or a 5xx other than 501 and 505, or in words of its own.

    Where it is one item that the service cannot serve, again and again, a source may take it for an
    `Unreadable`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer: 2xx, 304, 404, 410, or a redirect that was not followed since none may be."""

    status: int
    headers: httpx.Headers
    """Names in any case: `answer.headers.get("etag")`."""
    body: bytes = field(repr=False)
    """Unpacked."""
    url: str
    """Where it came from, after all redirects."""

    @property
    def gone(self) -> bool:
        """There is no such thing (404, 410)."""
        return self.status in {404, 410}

    @property
    def media_type(self) -> str:
        """In lower case and without parameters; empty where the server says none."""
        return str(self.headers.get("content-type", "")).partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """By the charset that the server names, else UTF-8; what does not fit becomes U+FFFD."""
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        try:
            return self.body.decode(message.get_content_charset("utf-8"), "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Raises Malformed: it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            kind = self.media_type or "nothing named"
            raise Malformed(f"{spoken(self.url)} did not answer in JSON ({kind})") from error

    def json_object(self) -> dict[str, Any]:
        """Raises Malformed: it is not a JSON object."""
        match self.json():
            case dict() as value:
                return value
            case other:
                raise Malformed(
                    f"{spoken(self.url)} answered a {type(other).__name__}, not an object"
                )

    def json_list(self) -> list[Any]:
        """Raises Malformed: it is not a JSON array."""
        match self.json():
            case list() as value:
                return value
            case other:
                raise Malformed(f"{spoken(self.url)} answered a {type(other).__name__}, not a list")


def spoken(url: str | httpx.URL) -> str:
    """An address as it may be shown to people and logs: without its query, which may hold secrets."""
    return str(httpx.URL(url).copy_with(query=None, fragment=None))
