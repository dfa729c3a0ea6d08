"""Calls of GitHub's REST API: an answer, or what its refusal asks a person or a run to do.

What the statuses mean is told under docs.github.com/rest: "Troubleshooting the REST API", "Rate limits
for the REST API" and "Authenticating to the REST API".
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from connectors.closing import Closing
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.http_client.client import WebClient
from connectors.http_client.pagination import Page, linked_pages
from connectors.http_client.rate_limits import github_pace, server_time
from connectors.http_client.request import Authorization, Params
from connectors.http_client.response import Answer, BadAnswer, Malformed, NotAuthorised, Rejected
from connectors.http_client.token_account import Account

T = TypeVar("T")

PAGE = 100
"""Items asked for at once: the most there are."""

_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_LATER = timedelta(minutes=5)
_BLOCKED = 451


class Refused(ActionRequiredError):
    """The token is valid and may not see this (403), or nobody may (451)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubAccount(Account):
    made_at = "GitHub, Settings, Developer settings, Personal access tokens"


class Api(Closing):
    """One connection of one run. To be closed."""

    def __init__(self, account: Account) -> None:
        self._account = account
        own = Authorization.bearer(account.api_url, account.token)
        self._client = WebClient(
            reach=account.reach, authorization=own, pace=github_pace, headers=_HEADERS
        )
        self._began: datetime | None = None

    @property
    def began(self) -> datetime:
        """When the first answer came, by GitHub's own clock. Raises ValueError: none has come."""
        if self._began is None:
            raise ValueError("nothing was asked yet")
        return self._began

    def get(self, path: str, params: Params | None = None) -> Answer:
        """
        Raises:
            ActionRequiredError: the token is not valid; Refused, a kind of it: it may not see this.
            TemporarilyUnavailableError: not now.
            BadAnswer: the answer cannot be used.
        """
        with self._told():
            answer = self._client.get(f"{self._account.api_url}{path}", params=params)
        return self._dated(answer)

    def query(self, asked: Mapping[str, object]) -> Answer:
        """What the GraphQL API answers; its errors are in the body. See `get`."""
        with self._told():
            answer = self._client.query(graphql_url(self._account.api_url), json=asked)
        return self._dated(answer)

    def refused(self, what: str, said: str) -> Refused:
        """That the token may not see it."""
        account = self._account
        return Refused(
            f"the token of {account.source} may not see {what} ({said}): give it the right, or"
            f" {account.mend}"
        )

    def pages(self, path: str, params: Params) -> Iterator[Page]:
        """See `get`. A list that is gone is yielded as one page; a later page that is gone is Malformed, since
        with it all would be that comes after."""
        with self._told():
            asked = {**params, "per_page": PAGE}
            url = f"{self._account.api_url}{path}"
            for number, page in enumerate(linked_pages(self._client, url, params=asked)):
                if number and page.answer.gone:
                    raise Malformed(f"{path} ends in a page that is not there")
                self._dated(page.answer)
                yield page

    def all(self, path: str, params: Params | None = None) -> Iterator[dict[str, Any]]:
        """The objects of all pages; none where there is no such list. See `get`."""
        for page in self.pages(path, params or {}):
            if not page.answer.gone:
                yield from objects(page.answer)

    def present(self, path: str) -> Iterator[dict[str, Any]]:
        """The objects of all pages of a list that must be there. See `get`; Malformed where it is not."""
        for page in self.pages(path, {}):
            if page.answer.gone:
                raise Malformed(f"GitHub says that there is no {path}")
            yield from objects(page.answer)

    def close(self) -> None:
        self._client.close()

    def _dated(self, answer: Answer) -> Answer:
        if self._began is None:
            self._began = server_time(answer)
        return answer

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except NotAuthorised as error:
            raise self._refusal(error.answer) from error
        except Rejected as error:
            if error.answer.status != _BLOCKED:
                raise
            raise Refused(f"{error.answer.url} is blocked for legal reasons (451)") from error

    def _refusal(self, answer: Answer) -> ActionRequiredError:
        source, said = self._account.source, _message(answer)
        if answer.status == 401:
            return ActionRequiredError(
                f"GitHub does not take the token of {source} ({said}): it has expired or was"
                f" revoked; {self._account.mend}"
            )
        sso = answer.headers.get("x-github-sso", "")
        if sso.startswith("required"):
            where = sso.partition("url=")[2] or "GitHub, Settings, Personal access tokens"
            return ActionRequiredError(
                "the organisation wants the token to be authorised for single sign-on: open"
                f" {where} and authorise it, or {self._account.mend}"
            )
        rights = answer.headers.get("x-accepted-github-permissions", "")
        wants = f"; it wants {rights}" if rights else ""
        return self.refused(answer.url.partition("?")[0], f"{said}{wants}")


def graphql_url(api_url: str) -> str:
    """Of a GitHub Enterprise Server, whose REST API is at /api/v3, it is /api/graphql."""
    return f"{api_url.removesuffix('/v3') if api_url.endswith('/api/v3') else api_url}/graphql"


def objects(answer: Answer) -> list[dict[str, Any]]:
    """Raises Malformed: it is not a list of objects."""
    found = answer.json_list()
    if not all(isinstance(one, dict) for one in found):
        raise Malformed("GitHub answers a list with what are no objects in it")
    return found


def field_of(raw: dict[str, Any], name: str, kind: type[T]) -> T:
    """Raises Malformed: it is not there, or of another type."""
    value = raw.get(name)
    if not isinstance(value, kind):
        raise Malformed(f"GitHub answers an object without {name}")
    return value


@contextmanager
def needed(what: str) -> Iterator[None]:
    """Around what a run cannot do without.

    Raises:
        TemporarilyUnavailableError: the answer cannot be used.
    """
    try:
        yield
    except BadAnswer as error:
        raise TemporarilyUnavailableError(
            f"GitHub's answer on {what} cannot be used: {error}", _LATER
        ) from error


def _message(answer: Answer) -> str:
    try:
        return str(answer.json_object().get("message", answer.status))[:200]
    except Malformed:
        return f"status {answer.status}"
