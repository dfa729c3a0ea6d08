"""SearXNG: a metasearch engine that companies run themselves (docs.searxng.org, "Search API")."""

from dataclasses import dataclass
from types import MappingProxyType

from pydantic import Field

from backend.web_search.providers.client import (
    ProviderAccount,
    ProviderClient,
    ResultNames,
    get_api_host,
    make_account,
)
from backend.web_search.providers.provider import ApiSettings, FetchRendered, ProviderKind
from backend.web_search.results import Freshness, WebQuery, WebResult
from connectors.errors import SourceAuthError
from connectors.http_client.response import Response
from connectors.http_client.setting_types import WebAddress
from connectors.registry import NoCredential
from indexing.runtime.deadline import Deadline

_NAMES = ResultNames(summary="content", published=("publishedDate",))
_TIME_RANGES = MappingProxyType(
    # It documents no week.
    {
        Freshness.DAY: "day",
        Freshness.WEEK: "month",
        Freshness.MONTH: "month",
        Freshness.YEAR: "year",
    }
)


class SearxngSettings(ApiSettings):
    """Your own SearXNG, with JSON among the formats of its settings."""

    api_url: WebAddress = Field(
        title="URL",
        description="The URL of SearXNG, with its path: https://searx.example.com. Inside your own network, name its"
        " host under Private hosts, too.",
    )


class _SearxngClient(ProviderClient):
    def auth_error(self, response: Response) -> SourceAuthError:
        """Explain a refusal: SearXNG answers 403 where the format is not enabled."""
        if response.status == 403:
            return SourceAuthError(
                f"SearXNG does not answer in JSON ({self.account.source}, status 403). In its settings.yml add json to"
                " formats under search, and restart it. If it does, a limiter or a proxy in front of it refuses Quarry."
            )
        return SourceAuthError(
            f"What is in front of SearXNG wants somebody to sign in ({self.account.source}, status"
            f" {response.status}). Let the server of Quarry through."
        )


@dataclass(frozen=True, slots=True)
class SearxngProvider:
    account: ProviderAccount

    def search(self, query: WebQuery, deadline: Deadline) -> list[WebResult]:
        """See `SearchProvider.search`."""
        params: dict[str, str | int] = {"q": query.text_with_sites, "format": "json", "pageno": 1}
        if query.freshness:
            params["time_range"] = _TIME_RANGES[query.freshness]
        if query.language:
            params["language"] = query.language
        with _SearxngClient(self.account, deadline) as client:
            return client.get_results("/search", params, _NAMES)[: query.limit]


def _make_provider(
    name: str, settings: SearxngSettings, _: NoCredential, __: FetchRendered
) -> SearxngProvider:
    return SearxngProvider(make_account("SearXNG", name, settings))


PROVIDER_KIND = ProviderKind(
    title="SearXNG",
    settings=SearxngSettings,
    credential=NoCredential,
    provider=_make_provider,
    get_receiver=get_api_host,
)
