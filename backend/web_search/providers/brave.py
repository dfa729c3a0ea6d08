"""Brave Search API (api-dashboard.search.brave.com, "Web Search" and "Rate limiting")."""

from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from pydantic import Field

from backend.web_search.providers.client import (
    ProviderAccount,
    ProviderClient,
    Refusal,
    ResultNames,
    get_api_host,
    make_keyed_provider,
)
from backend.web_search.providers.provider import (
    ApiSettings,
    KeyCredential,
    ProviderKind,
)
from backend.web_search.results import Freshness, WebQuery, WebResult
from connectors.http_client.rate_limits import read_standard_rate_limit
from connectors.http_client.response import MalformedResponse, Response
from connectors.http_client.setting_types import WebAddress
from indexing.runtime.deadline import Deadline

_MOST_RESULTS = 20
_NAMES = ResultNames(
    items=("web", "results"), sign="type", summary="description", published=("page_age", "age")
)
_FRESHNESS = MappingProxyType(
    {Freshness.DAY: "pd", Freshness.WEEK: "pw", Freshness.MONTH: "pm", Freshness.YEAR: "py"}
)
_OWN_CODES = MappingProxyType({"zh": "zh-hans", "ja": "jp", "pt": "pt-pt", "no": "nb"})
"""Of languages for which it does not take the code of ISO 639-1."""
_LANGUAGES = frozenset(
    {
        "ar",
        "eu",
        "bn",
        "bg",
        "ca",
        "hr",
        "cs",
        "da",
        "nl",
        "en",
        "et",
        "fi",
        "fr",
        "gl",
        "de",
        "el",
        "gu",
        "he",
        "hi",
        "hu",
        "is",
        "it",
    }
    | {
        "kn",
        "ko",
        "lv",
        "lt",
        "ms",
        "ml",
        "mr",
        "nb",
        "pl",
        "pa",
        "ro",
        "ru",
        "sr",
        "sk",
        "sl",
        "es",
        "sv",
        "ta",
        "te",
        "th",
        "tr",
        "uk",
        "vi",
    }
)
"""Any other code is refused."""
_LONGEST_WAIT = timedelta(days=31)


class BraveSettings(ApiSettings):
    """Brave Search, with the key of an account at brave.com."""

    api_url: WebAddress = Field(
        default="https://api.search.brave.com", description="Another address only behind a gateway."
    )


@dataclass(frozen=True, slots=True)
class BraveProvider:
    account: ProviderAccount

    def search(self, query: WebQuery, deadline: Deadline) -> list[WebResult]:
        """See `SearchProvider.search`."""
        params: dict[str, str | int] = {
            "q": query.text_with_sites,
            "count": min(query.limit, _MOST_RESULTS),
        }
        if query.freshness:
            params["freshness"] = _FRESHNESS[query.freshness]
        if language := _find_code(query.language):
            params["search_lang"] = language
        with ProviderClient(
            self.account,
            deadline,
            read_rate_limit=read_brave_rate_limit,
            read_refusal=_read_refusal,
        ) as client:
            return client.get_results("/res/v1/web/search", params, _NAMES)


def _find_code(language: str | None) -> str | None:
    code = _OWN_CODES.get(language or "") or language
    return code if code in _LANGUAGES or code in _OWN_CODES.values() else None


def read_brave_rate_limit(response: Response) -> timedelta | None:
    """Read status 429: of several windows, such as a second and a month, those that are used up say when to come back."""
    if response.status != 429:
        return read_standard_rate_limit(response)
    remaining = _read_numbers(response, "x-ratelimit-remaining")
    resets = _read_numbers(response, "x-ratelimit-reset")
    waits = [reset for left, reset in zip(remaining, resets, strict=False) if left <= 0]
    if not waits:
        return read_standard_rate_limit(response)
    return min(timedelta(seconds=max(waits)), _LONGEST_WAIT)


def _read_numbers(response: Response, name: str) -> list[int]:
    parts = [part.strip() for part in response.headers.get(name, "").split(",")]
    return [int(part) for part in parts if part.isascii() and part.isdecimal() and len(part) < 10]


def _read_refusal(response: Response) -> Refusal | None:
    """Return why it refuses: it answers 402 once a limit of costs is reached, and 422 to a key that it does not know.

    It answers 422 to parameters as well.
    """
    if response.status == 402:
        return Refusal.QUOTA
    try:
        error = response.json_object().get("error")
    except MalformedResponse:
        return None
    is_of_key = isinstance(error, dict) and "TOKEN" in str(error.get("code"))
    return Refusal.KEY if is_of_key else None


PROVIDER_KIND = ProviderKind(
    title="Brave Search",
    settings=BraveSettings,
    credential=KeyCredential,
    provider=make_keyed_provider(
        "Brave Search",
        BraveProvider,
        key_page="api-dashboard.search.brave.com",
        key_header="X-Subscription-Token",
    ),
    get_receiver=get_api_host,
)
