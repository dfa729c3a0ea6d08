"""Calls of Confluence's REST APIs: an answer, or what its refusal asks a person or a run to do.

What they are is told under developer.atlassian.com: "Confluence Cloud REST API" (v1 and v2) and
"Confluence Data Center REST API".
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, TypeVar

from connectors.closing import Closing
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.extraction.result import parsed_time
from connectors.http_client.address_guard import Reach
from connectors.http_client.client import WebClient
from connectors.http_client.rate_limits import atlassian_pace, server_time
from connectors.http_client.request import BOUNDS, Authorization, Params
from connectors.http_client.response import Answer, BadAnswer, Malformed, NotAuthorised

T = TypeVar("T")

_ASKED = MappingProxyType({"Accept": "application/json"})
_UNFOLLOWED = replace(BOUNDS, redirects=0)
_LATER = timedelta(minutes=5)


class Refused(ActionRequiredError):
    """The token is valid and may not see this (403), or nobody is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """By which a site is asked."""

    source: str
    base: str
    """Where the site begins, with no slash at the end."""
    authorization: Authorization = field(repr=False)
    reach: Reach
    where: str
    """Where a token is made."""

    @property
    def mend(self) -> str:
        return f"make a new token ({self.where}) and set it by quarry sources edit {self.source}"


class Api(Closing):
    """One connection of one run. To be closed."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._client = WebClient(
            reach=account.reach,
            authorization=account.authorization,
            pace=atlassian_pace,
            headers=_ASKED,
        )
        self._stranger = WebClient(
            reach=account.reach, pace=atlassian_pace, headers=_ASKED, bounds=_UNFOLLOWED
        )
        self._now: datetime | None = None

    @property
    def base(self) -> str:
        return self._account.base

    @property
    def now(self) -> datetime:
        """By the site's own clock, at its latest answer. Raises ValueError: none has come."""
        if self._now is None:
            raise ValueError("nothing was asked yet")
        return self._now

    def get(self, path: str, params: Params | None = None) -> Answer:
        """`path` begins where the site begins.

        Raises:
            ActionRequiredError: the token is not valid; Refused, a kind of it: it may not see this.
            TemporarilyUnavailableError: not now.
            BadAnswer: the answer cannot be used.
        """
        with self._told():
            answer = self._client.get(f"{self.base}{path}", params=params)
        self._now = server_time(answer)
        return answer

    def found(self, path: str, params: Params | None = None) -> dict[str, Any] | None:
        """The object; none where it is gone. See `get`."""
        answer = self.get(path, params)
        return None if answer.gone else answer.json_object()

    def file(self, path: str, most: int) -> Answer:
        """Of `most` bytes. See `get`."""
        with self._told():
            bounds = replace(BOUNDS, whole=600.0, most_bytes=most)
            headers = {"Accept": "*/*"}
            return self._client.get(f"{self.base}{path}", headers=headers, bounds=bounds)

    def ask(self, path: str, question: Mapping[str, Any]) -> Answer:
        """Post what only asks. See `get`."""
        with self._told():
            return self._client.query(f"{self.base}{path}", json=dict(question))

    def unknown(self, path: str) -> dict[str, Any] | None:
        """What somebody without an account is answered; none where they are refused or sent to sign in.

        Raises:
            TemporarilyUnavailableError: not now.
        """
        try:
            answer = self._stranger.get(f"{self.base}{path}")
            return answer.json_object() if answer.status == 200 else None
        except (NotAuthorised, BadAnswer):
            return None

    def close(self) -> None:
        self._client.close()
        self._stranger.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except NotAuthorised as error:
            raise self._refusal(error.answer) from error

    def _refusal(self, answer: Answer) -> ActionRequiredError:
        source = self._account.source
        failed = "FAILED" in answer.headers.get("x-seraph-loginreason", "").upper()
        if answer.status == 401 or failed:
            return self.not_taken()
        return Refused(
            f"the token of {source} may not see {answer.url.partition('?')[0]} ({_message(answer)}):"
            f" give its account the right, or {self._account.mend}"
        )

    def not_taken(self) -> ActionRequiredError:
        return ActionRequiredError(
            f"Confluence does not take the token of {self._account.source}: it has expired, was"
            f" revoked, or is of another account; {self._account.mend}"
        )


@contextmanager
def needed(what: str) -> Iterator[None]:
    """Around what a run cannot do without.

    Raises:
        TemporarilyUnavailableError: the answer cannot be used.
    """
    try:
        yield
    except BadAnswer as error:
        text = f"Confluence's answer on {what} cannot be used: {error}"
        raise TemporarilyUnavailableError(text, _LATER) from error


def field_of(raw: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Raises Malformed: it is not there, or of another type."""
    value = raw.get(name)
    if not isinstance(value, kind):
        raise Malformed(f"Confluence answers an object without {name}")
    return value


def inside(raw: Mapping[str, Any], *names: str) -> Any:
    """What stands that deep in objects; none where one of them is missing."""
    found: Any = raw
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def text_of(raw: Mapping[str, Any], *names: str) -> str:
    """Empty where there is none."""
    found = inside(raw, *names)
    return str(found) if isinstance(found, str | int) else ""


def id_of(raw: Mapping[str, Any]) -> str:
    """Ids are numbers, which some answers tell as texts. Raises Malformed."""
    told = text_of(raw, "id")
    if not told:
        raise Malformed("Confluence answers an object without id")
    return told


def time_of(raw: Mapping[str, Any], *names: str) -> datetime:
    """Raises Malformed."""
    moment = parsed_time(text_of(raw, *names))
    if moment is None:
        raise Malformed(f"Confluence answers a {names[-1]} that is no time")
    return moment


def results_of(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Raises Malformed: it is no list of objects."""
    found = field_of(raw, "results", list)
    if not all(isinstance(one, dict) for one in found):
        raise Malformed("Confluence answers a list with what are no objects in it")
    return found


def _message(answer: Answer) -> str:
    try:
        said = answer.json_object().get("message") or answer.status
    except Malformed:
        said = answer.status
    return " ".join(str(said)[:200].split())
