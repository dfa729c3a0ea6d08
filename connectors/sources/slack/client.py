"""Calls of Slack's Web API: one method, its answer, or what its error asks a person or a run to do."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from connectors.closing import Closing
from connectors.errors import ActionRequiredError
from connectors.extraction.result import CannotRead
from connectors.http_client.address_guard import AddressRefused, checked_url
from connectors.http_client.client import WebClient
from connectors.http_client.rate_limits import UNSAID, Patience, standard_pace
from connectors.http_client.request import Authorization, Bounds, Params, origin_of
from connectors.http_client.response import (
    Answer,
    BadAnswer,
    Failing,
    Malformed,
    NotAuthorised,
    RateLimited,
    Rejected,
)
from connectors.http_client.token_account import Account
from connectors.sources.slack.workspace import NoSuchPlace

_SHORTLY = Patience(longest=30.0)
_AT_LENGTH = Patience(longest=120.0, tries=8)
"""For what must be had in one piece, such as a thread: a wait of a minute is sat out."""
_A_MINUTE = timedelta(minutes=1)
_MOST_ITEMS = 999

_ENDED = {
    "account_inactive",
    "ekm_access_denied",
    "enterprise_is_restricted",
    "invalid_auth",
    "not_allowed_token_type",
    "not_authed",
    "org_login_required",
    "team_access_not_granted",
    "token_expired",
    "token_revoked",
    "two_factor_setup_required",
    "user_removed_from_team",
}
_NOT_THERE = {
    "channel_is_limited_access",
    "channel_not_found",
    "is_archived",
    "message_not_found",
    "not_in_channel",
    "thread_not_found",
    "user_not_found",
    "user_not_visible",
    "users_not_found",
}
_BUSY = {
    "fatal_error",
    "fetch_members_failed",
    "internal_error",
    "request_timeout",
    "service_unavailable",
    "team_added_to_org",
}


class MissingScope(ActionRequiredError):
    """The app may not do this; `needed` are the scopes that it lacks."""

    def __init__(self, message: str, needed: str) -> None:
        super().__init__(message)
        self.needed = needed


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackAccount(Account):
    made_at = "api.slack.com/apps, the app, OAuth & Permissions, install to the workspace"

    @property
    def files_url(self) -> str:
        """Where the files lie: files.slack.com for slack.com."""
        url = checked_url(self.api_url)
        return f"{url.scheme}://files.{url.host}"


class Calls(Closing):
    """Asks one workspace, for the length of one run. To be closed."""

    def __init__(self, account: SlackAccount) -> None:
        self._account = account
        own = Authorization.bearer(account.api_url, account.token)
        files = _beside(account.files_url, account.token)
        self._shortly = _client(account, own, _SHORTLY)
        self._at_length = _client(account, own, _AT_LENGTH)
        self._files = None if files is None else _client(account, files, _SHORTLY)

    def close(self) -> None:
        for client in (self._shortly, self._at_length, self._files):
            if client is not None:
                client.close()

    def quick(self, method: str, params: Params = MappingProxyType({})) -> Mapping[str, Any]:
        """What the method answers; a longer wait that Slack asks for ends the run for now.

        Raises:
            RateLimited, Unavailable: it does not answer now.
            ActionRequiredError: the token has ended; MissingScope: it may not do this.
            BadAnswer: the answer is none; NoSuchPlace: there is no such channel, thread or user.
        """
        return self._call(self._shortly, method, params)[1]

    def patient(self, method: str, params: Params = MappingProxyType({})) -> Mapping[str, Any]:
        """As `quick`, but a minute or two are sat out."""
        return self._call(self._at_length, method, params)[1]

    def scopes(self) -> tuple[Mapping[str, Any], frozenset[str] | None]:
        """Who the token stands for, and what it may do, where Slack says so."""
        answer, told = self._call(self._shortly, "auth.test", {})
        listed = answer.headers.get("x-oauth-scopes")
        return told, None if listed is None else frozenset(listed.replace(",", " ").split())

    def all(self, method: str, key: str, params: Params = MappingProxyType({})) -> Iterator[Any]:
        """Every item of a list that comes in pages."""
        cursor = ""
        seen = {cursor}
        while True:
            more = {"cursor": cursor} if cursor else {}
            answer = self.patient(method, {**params, "limit": _MOST_ITEMS, **more})
            yield from items(answer, key, method)
            cursor = next_cursor(answer)
            if not cursor:
                return
            if cursor in seen:
                raise Malformed(f"the pages of Slack's {method} go in a circle")
            seen.add(cursor)

    def file(self, url: str, most_bytes: int) -> bytes:
        """
        Raises:
            CannotRead: it is not with Slack, not to be had by this token, or too large.
            RateLimited, Unavailable: Slack does not answer.
        """
        try:
            client = self._file_client(url)
            answer = client.get(url, bounds=Bounds(most_bytes=most_bytes, redirects=0))
        except (BadAnswer, NotAuthorised, AddressRefused, Failing) as error:
            raise CannotRead(str(error)) from error
        if answer.gone:
            raise CannotRead("the file is not there any more")
        if answer.status != 200:
            # Who may not read a file is led to a page for people to sign in.
            raise CannotRead("Slack does not give the file: the app may lack the scope files:read")
        return answer.body

    def _file_client(self, url: str) -> WebClient:
        """The one that shows its token to where the file lies; others would be shown it in vain."""
        if origin_of(url) == origin_of(self._account.api_url):
            return self._shortly
        if self._files is not None and origin_of(url) == origin_of(self._account.files_url):
            return self._files
        raise CannotRead("it does not lie with Slack itself")

    def _call(
        self, client: WebClient, method: str, params: Params
    ) -> tuple[Answer, Mapping[str, Any]]:
        try:
            answer = client.get(f"{self._account.api_url}/{method}", params=params)
        except NotAuthorised as error:
            raise ActionRequiredError(f"{error}; {self._account.mend}") from error
        except Rejected as error:
            raise ActionRequiredError(
                f"{error}: check api_url by quarry sources edit {self._account.source}"
            ) from error
        if answer.gone:
            raise Malformed(f"{self._account.api_url} has no method {method}; check api_url")
        told = answer.json_object()
        if told.get("ok") is True:
            return answer, told
        raise self._error(method, answer, told)

    def _error(self, method: str, answer: Answer, told: Mapping[str, Any]) -> Exception:
        """What an answer that is not ok asks for."""
        match told:
            case {"ok": False, "error": "missing_scope"}:
                needed = str(told.get("needed") or "that the method wants")
                return MissingScope(lacking(needed, self._account.source), needed)
            case {"ok": False, "error": "ratelimited"}:
                wait = standard_pace(replace(answer, status=429)) or UNSAID
                return RateLimited(f"Slack asks to wait before the next {method}", wait)
            case {"ok": False, "error": str(code)} if code in _ENDED:
                return ActionRequiredError(
                    f"Slack does not take the token ({code}): {self._account.mend}"
                )
            case {"ok": False, "error": str(code)} if code in _NOT_THERE:
                return NoSuchPlace(f"Slack's {method} says {code}")
            case {"ok": False, "error": str(code)} if code in _BUSY:
                return Failing(f"Slack's {method} fails ({code})", _A_MINUTE)
            case {"ok": False, "error": str(code)}:
                return BadAnswer(f"Slack's {method} says {code}")
            case _:
                return Malformed(f"Slack's {method} says neither ok nor what is wrong")


def lacking(scopes: str, source: str) -> str:
    return (
        f"the Slack app lacks the scope {scopes}: add it (api.slack.com/apps, the app, OAuth &"
        " Permissions), install the app to the workspace again, and set the new token, where it"
        f" is another, by quarry sources edit {source}"
    )


def items(answer: Mapping[str, Any], key: str, method: str) -> list[Any]:
    """Raises Malformed: there is no such list in the answer."""
    match answer.get(key):
        case list() as found:
            return found
        case _:
            raise Malformed(f"Slack's {method} answers without {key}")


def next_cursor(answer: Mapping[str, Any]) -> str:
    match answer:
        case {"response_metadata": {"next_cursor": str(cursor)}}:
            return cursor
        case _:
            return ""


def _beside(origin: str, token: str) -> Authorization | None:
    """None where the API is at an address without a name, beside which none can be."""
    try:
        origin_of(origin)
    except AddressRefused:
        return None
    return Authorization.bearer(origin, token)


def _client(account: SlackAccount, own: Authorization, patience: Patience) -> WebClient:
    return WebClient(reach=account.reach, authorization=own, patience=patience)
