"""The client of providers with a JSON API: one search is one request, which ends with the deadline."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from backend.web_search.providers.provider import (
    ApiSettings,
    FetchRendered,
    KeyCredential,
    QuotaExceededError,
    SearchProvider,
)
from backend.web_search.result_cleaning import parse_published
from backend.web_search.results import WebResult
from connectors.errors import QuarryError, SourceAuthError, SourceError
from connectors.http_client.address_guard import (
    AddressNotAllowedError,
    parse_allowed_networks,
)
from connectors.http_client.api_client import (
    ApiAccount,
    ApiClient,
    find_value,
    get_error_message,
)
from connectors.http_client.rate_limits import RateLimitReader, read_standard_rate_limit
from connectors.http_client.request import MEBIBYTE, Authorization, Params, RequestLimits
from connectors.http_client.response import ClientError, MalformedResponse, Response, ResponseError
from connectors.http_client.retry_policy import RetryPolicy
from connectors.http_client.transport import request_timeout
from indexing.runtime.deadline import Deadline

ONCE_MORE = RetryPolicy(max_attempts=2, base_delay=0.2, max_total_delay=2.0)
"""Behind it stands the next provider."""
QUOTA_WAIT = timedelta(hours=1)
"""When to ask again where a provider does not say when its quota is renewed: a larger plan may be bought meanwhile."""
_LIMITS = RequestLimits(max_bytes=4 * MEBIBYTE, connect=5.0)


class Refusal(StrEnum):
    """What a provider means by a status."""

    KEY = "key"
    QUOTA = "quota"


ReadRefusal: TypeAlias = Callable[[Response], Refusal | None]
"""Returns what a 4xx status means beyond the usual; None if it is as usual."""


def find_no_refusal(response: Response) -> None:
    del response


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAccount(ApiAccount):
    """The account with which a provider is asked.

    Attributes:
        key_header: The header of the key; the key is sent as Bearer where it is empty, and none where there is no key.
    """

    key_header: str = ""

    @property
    def authorization(self) -> Authorization:
        if not self.token:
            return Authorization(self.api_url, {})
        if self.key_header:
            return Authorization(self.api_url, {self.key_header: self.token})
        return Authorization.bearer(self.api_url, self.token)

    @property
    def renewal_hint(self) -> str:
        return f"enter a valid one, from {self.token_page}: quarry web providers edit {self.source}"


def make_account(
    service: str,
    name: str,
    settings: ApiSettings,
    *,
    key: str = "",
    key_header: str = "",
    key_page: str = "",
) -> ProviderAccount:
    """Return the account of the provider of this name."""
    return ProviderAccount(
        service=service,
        source=name,
        api_url=settings.api_url,
        token=key,
        token_page=key_page,
        key_header=key_header,
        allowed_networks=parse_allowed_networks(settings.private_hosts),
    )


def make_keyed_provider(
    service: str,
    make: Callable[[ProviderAccount], SearchProvider],
    *,
    key_page: str,
    key_header: str = "",
) -> Callable[[str, ApiSettings, KeyCredential, FetchRendered], SearchProvider]:
    """Return how a provider is made that takes an API key and no more."""

    def make_provider(
        name: str, settings: ApiSettings, credential: KeyCredential, _: FetchRendered
    ) -> SearchProvider:
        key = credential.key.get_secret_value()
        return make(
            make_account(service, name, settings, key=key, key_header=key_header, key_page=key_page)
        )

    return make_provider


def get_api_host(settings: ApiSettings) -> str:
    return urlsplit(settings.api_url).hostname or settings.api_url


class ProviderClient(ApiClient):
    """Requests to one provider during one search. To be closed."""

    def __init__(
        self,
        account: ProviderAccount,
        deadline: Deadline,
        *,
        read_rate_limit: RateLimitReader = read_standard_rate_limit,
        read_refusal: ReadRefusal = find_no_refusal,
    ) -> None:
        super().__init__(
            account,
            headers={"Accept": "application/json"},
            read_rate_limit=read_rate_limit,
            retry_policy=ONCE_MORE,
        )
        self._deadline = deadline
        self._read_refusal = read_refusal

    def get_results(self, path: str, params: Params, names: "ResultNames") -> list[WebResult]:
        """Return the results that a GET yields. Raises the errors of `SearchProvider.search`."""
        with self._bounded():
            return self._read(self.get(path, params, limits=_LIMITS), names)

    def post_results(
        self, path: str, body: Mapping[str, object], names: "ResultNames"
    ) -> list[WebResult]:
        """Return the results that a POST yields. Raises the errors of `SearchProvider.search`."""
        with self._bounded():
            url = f"{self.account.api_url}{path}"
            return self._read(self.query(url, body, limits=_LIMITS), names)

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """End the requests in the block with the deadline, and sort what goes wrong."""
        self._deadline.check()
        with (
            request_timeout(self._deadline.remaining()),
            self._deadline.on_expiry(self.abort),
            _translate_response_errors(self),
        ):
            yield

    def _read(self, response: Response, names: "ResultNames") -> list[WebResult]:
        if response.not_found:
            host = urlsplit(response.url).hostname
            raise SourceError(
                f"{self.account.service} is not at this address of {host} (status {response.status}):"
                f" check the URL in the settings of {self.account.source}."
            )
        return list(
            _read_items(names.find_items(response.json_object()), names, self.account.source)
        )

    def auth_error(self, response: Response) -> SourceAuthError:
        return SourceAuthError(
            f"{self.account.service} rejects the key of {self.account.source}"
            f" ({self.describe(response)}); {self.account.renewal_hint}"
        )

    def interpret(self, error: ClientError) -> QuarryError:
        """Return the error of the product for a status 4xx."""
        service, said = self.account.service, self.describe(error.response)
        match self._read_refusal(error.response):
            case Refusal.KEY:
                return self.auth_error(error.response)
            case Refusal.QUOTA:
                return QuotaExceededError(
                    f"The plan of {self.account.source} at {service} is used up ({said}).",
                    QUOTA_WAIT,
                )
            case None:
                return SourceError(f"{service} rejects the search ({said}).")

    def describe(self, response: Response) -> str:
        """Return what the service says, without the key: some repeat it."""
        key = self.account.token
        if key:
            # Before the message is cut: a part of the key would not be found in it.
            body = response.body.replace(key.encode(), "…".encode())
            response = replace(response, body=body)
        said = _find_said(response) or get_error_message(response)
        return said.replace(key, "…") if key else said


@contextmanager
def _translate_response_errors(client: ProviderClient) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise client.interpret(error) from error
    except ResponseError as error:
        raise SourceError(
            f"{client.account.service} answers in a way that cannot be read: {error}."
        ) from error
    except AddressNotAllowedError as error:
        raise AddressNotAllowedError(
            str(error).replace("of the source", f"of {client.account.source}")
        ) from error


def _find_said(response: Response) -> str:
    """Return the message of the error, where services hide it deeper than in `message`."""
    try:
        body = response.json_object()
    except MalformedResponse:
        return ""
    for name in ("detail", "error"):
        match body.get(name):
            case str(said) | {"error": str(said)} | {"detail": str(said)} | {"message": str(said)}:
                return " ".join(said[:200].split())
            case _:
                continue
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultNames:
    """What the parts of an answer are called by a service.

    Attributes:
        items: The path of the list of results.
        sign: What every answer has; with it, a list that is missing is one without results.
        published: The names of dates, of which the first that is given counts.
    """

    items: tuple[str, ...] = ("results",)
    sign: str = ""
    title: str = "title"
    url: str = "url"
    summary: str
    published: tuple[str, ...]

    def find_items(self, answer: Mapping[str, Any]) -> list[Any]:
        """Return the results in an answer. Raises MalformedResponse: there is no list of results."""
        items = find_value(answer, *self.items)
        if isinstance(items, list):
            return items
        if items is None and self.sign in answer:
            return []
        raise MalformedResponse("there is no list of results in it")


def _read_items(items: Iterable[Any], names: ResultNames, provider: str) -> Iterator[WebResult]:
    """Yield the results; what has no address is left out."""
    now = datetime.now(UTC)
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get(names.url), str):
            continue
        dates = (parse_published(item.get(name), now) for name in names.published)
        yield WebResult(
            title=_get_text(item, names.title),
            url=item[names.url],
            summary=_get_text(item, names.summary),
            published=next((date for date in dates if date), None),
            provider=provider,
        )


def _get_text(item: Mapping[str, object], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""
