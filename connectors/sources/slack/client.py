"""The client of Slack's Web API, whose errors are in the body under status 200."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from connectors.errors import SourceAuthError, SourceError
from connectors.extraction.result import ExtractionError
from connectors.http_client.address_guard import AddressNotAllowedError, validate_url
from connectors.http_client.api_client import ApiAccount, ApiClient, find_text, get_field
from connectors.http_client.client import WebClient
from connectors.http_client.rate_limits import DEFAULT_WAIT, read_standard_rate_limit
from connectors.http_client.request import Authorization, Params, RequestLimits, get_origin
from connectors.http_client.response import (
    ClientError,
    MalformedResponse,
    NotAuthorizedError,
    RateLimitedError,
    Response,
    ResponseError,
    ServerError,
)
from connectors.http_client.retry_policy import RetryPolicy

_QUICK = RetryPolicy(max_total_delay=30.0)
_PATIENT = RetryPolicy(max_total_delay=120.0, max_attempts=8)
"""For what must be read in one piece, such as a thread: a wait of a minute is slept."""
_RETRY_AFTER = timedelta(minutes=1)
_PAGE_SIZE = 999

_INVALID_TOKEN = {
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
_NOT_FOUND = {
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
_SERVER_ERRORS = {
    "fatal_error",
    "fetch_members_failed",
    "internal_error",
    "request_timeout",
    "service_unavailable",
    "team_added_to_org",
}


class SlackNotFoundError(ResponseError):
    """The channel, the thread or the user does not exist, or the token may not see it."""


class MissingScopeError(SourceAuthError):
    """The app lacks permissions."""

    def __init__(self, scopes: str, source: str) -> None:
        super().__init__(
            f"the Slack app lacks the scope {scopes}: add it (api.slack.com/apps, the app, OAuth &"
            " Permissions), install the app to the workspace again and, if the token has changed,"
            f" set it with `quarry sources edit {source}`"
        )
        self.scopes = scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackAccount(ApiAccount):
    service: str = "Slack"
    token_page: str = "api.slack.com/apps, the app, OAuth & Permissions, install to the workspace"

    @property
    def files_url(self) -> str:
        """Where files are stored: files.slack.com for slack.com."""
        url = validate_url(self.api_url)
        return f"{url.scheme}://files.{url.host}"


class SlackClient(ApiClient):
    def __init__(self, account: SlackAccount) -> None:
        super().__init__(account, retry_policy=_QUICK)
        self._patient = ApiClient(account, retry_policy=_PATIENT)
        self._files_url = account.files_url
        self._files = _connect_to_files(account)

    def close(self) -> None:
        super().close()
        self._patient.close()
        if self._files is not None:
            self._files.close()

    def call(self, method: str, params: Params = MappingProxyType({})) -> Mapping[str, Any]:
        """Return the result of a method; if Slack asks for a longer wait, the run ends for now.

        Raises:
            RateLimitedError, ServiceUnavailableError: Slack is not available now.
            SourceAuthError: the token is not valid; MissingScopeError: it lacks a permission.
            ResponseError: the response cannot be used; SlackNotFoundError: there is no such channel,
                thread or user.
        """
        return self._call(self, method, params)[1]

    def call_patiently(
        self, method: str, params: Params = MappingProxyType({})
    ) -> Mapping[str, Any]:
        """Return the result of a method like `call`, but wait for up to two minutes."""
        return self._call(self._patient, method, params)[1]

    def get_scopes(self) -> frozenset[str] | None:
        """Return the permissions of the token, None if Slack does not list them."""
        response, _ = self._call(self, "auth.test", {})
        listed = response.headers.get("x-oauth-scopes")
        return None if listed is None else frozenset(listed.replace(",", " ").split())

    def list_items(
        self, method: str, key: str, params: Params = MappingProxyType({})
    ) -> Iterator[Any]:
        """Yield the items of all pages."""
        cursor = ""
        seen = {cursor}
        while True:
            more = {"cursor": cursor} if cursor else {}
            result = self.call_patiently(method, {**params, "limit": _PAGE_SIZE, **more})
            yield from get_field(result, key, list)
            cursor = get_next_cursor(result)
            if not cursor:
                return
            if cursor in seen:
                raise MalformedResponse(f"the pages of Slack's {method} form a loop")
            seen.add(cursor)

    def download(self, url: str, max_bytes: int) -> bytes:
        """Return the content of a file.

        Raises:
            ExtractionError: it is not stored by Slack, the token may not read it, or it is too large.
            RateLimitedError, ServiceUnavailableError: Slack is not available now.
        """
        limits = RequestLimits(max_bytes=max_bytes, max_redirects=0)
        try:
            response = self._client_for(url).get(url, limits=limits)
        except (ResponseError, NotAuthorizedError, AddressNotAllowedError, ServerError) as error:
            raise ExtractionError(str(error)) from error
        if response.not_found:
            raise ExtractionError("the file no longer exists")
        if response.status != 200:
            # Without the permission Slack redirects to a login page.
            raise ExtractionError(
                "Slack does not return the file: the app may lack the scope files:read"
            )
        return response.body

    def _client_for(self, url: str) -> WebClient:
        """Return the client whose token is sent to the origin of a file."""
        if get_origin(url) == get_origin(self.account.api_url):
            return self._client
        if self._files is not None and get_origin(url) == get_origin(self._files_url):
            return self._files
        raise ExtractionError("the file is not stored by Slack")

    def _call(
        self, client: ApiClient, method: str, params: Params
    ) -> tuple[Response, Mapping[str, Any]]:
        api_url = self.account.api_url
        try:
            response = client.get(f"/{method}", params)
        except ClientError as error:
            raise SourceError(
                f"{error}: check api_url with `quarry sources edit {self.account.source}`"
            ) from error
        if response.not_found:
            raise MalformedResponse(f"{api_url} has no method {method}; check api_url")
        result = response.json_object()
        if result.get("ok") is True:
            return response, result
        raise self._to_error(method, response, result)

    def _to_error(self, method: str, response: Response, result: Mapping[str, Any]) -> Exception:
        match result:
            case {"ok": False, "error": "missing_scope"}:
                scopes = find_text(result, "needed") or f"that {method} needs"
                return MissingScopeError(scopes, self.account.source)
            case {"ok": False, "error": "ratelimited"}:
                wait = read_standard_rate_limit(replace(response, status=429)) or DEFAULT_WAIT
                return RateLimitedError(f"Slack asks to wait before the next {method}", wait)
            case {"ok": False, "error": str(code)} if code in _INVALID_TOKEN:
                return self.invalid_token_error(code)
            case {"ok": False, "error": str(code)} if code in _NOT_FOUND:
                return SlackNotFoundError(f"Slack's {method} returns the error {code}")
            case {"ok": False, "error": str(code)} if code in _SERVER_ERRORS:
                return ServerError(f"Slack's {method} fails ({code})", _RETRY_AFTER)
            case {"ok": False, "error": str(code)}:
                return ResponseError(f"Slack's {method} returns the error {code}")
            case _:
                return MalformedResponse(f"Slack's {method} returns neither ok nor an error")


def get_next_cursor(result: Mapping[str, Any]) -> str:
    return find_text(result, "response_metadata", "next_cursor")


def _connect_to_files(account: SlackAccount) -> WebClient | None:
    """Open a client for the host of the files; None if the API has an IP address, not a name."""
    try:
        get_origin(account.files_url)
    except AddressNotAllowedError:
        return None
    return WebClient(
        allowed_networks=account.allowed_networks,
        authorization=Authorization.bearer(account.files_url, account.token),
        retry_policy=_QUICK,
    )
