"""Tavily: a search engine for language models (docs.tavily.com, "Search")."""

from dataclasses import dataclass

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
from backend.web_search.results import WebQuery, WebResult
from connectors.http_client.response import Response
from connectors.http_client.setting_types import WebAddress
from indexing.runtime.deadline import Deadline

_MOST_RESULTS = 20
_NAMES = ResultNames(summary="content", published=("published_date",))
_USED_UP = {432, 433}
"""Statuses of its own: the plan, or the limit of what is paid by use, is used up."""


class TavilySettings(ApiSettings):
    """Tavily, with the key of an account at tavily.com."""

    api_url: WebAddress = Field(
        default="https://api.tavily.com", description="Another address only behind a gateway."
    )


@dataclass(frozen=True, slots=True)
class TavilyProvider:
    account: ProviderAccount

    def search(self, query: WebQuery, deadline: Deadline) -> list[WebResult]:
        """See `SearchProvider.search`. It has no choice of languages."""
        body: dict[str, object] = {
            "query": query.text,
            "max_results": min(query.limit, _MOST_RESULTS),
        }
        if query.freshness:
            body["time_range"] = query.freshness.value
        if query.sites:
            body["include_domains"] = list(query.sites)
        with ProviderClient(self.account, deadline, read_refusal=_read_refusal) as client:
            return client.post_results("/search", body, _NAMES)


def _read_refusal(response: Response) -> Refusal | None:
    return Refusal.QUOTA if response.status in _USED_UP else None


PROVIDER_KIND = ProviderKind(
    title="Tavily",
    settings=TavilySettings,
    credential=KeyCredential,
    provider=make_keyed_provider("Tavily", TavilyProvider, key_page="app.tavily.com"),
    get_receiver=get_api_host,
)
