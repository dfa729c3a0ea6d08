"""Serper: the results of Google as JSON (serper.dev, "Search")."""

from dataclasses import dataclass

from pydantic import Field

from backend.web_search.providers import client, provider
from backend.web_search.results import WebQuery, WebResult
from connectors.http_client.response import Response
from connectors.http_client.setting_types import WebAddress
from indexing.runtime.deadline import Deadline

_NAMES = client.ResultNames(
    items=("organic",), sign="searchParameters", url="link", summary="snippet", published=("date",)
)


class SerperSettings(provider.ApiSettings):
    """Serper, with the key of an account at serper.dev."""

    api_url: WebAddress = Field(
        default="https://google.serper.dev", description="Another address only behind a gateway."
    )


@dataclass(frozen=True, slots=True)
class SerperProvider:
    account: client.ProviderAccount

    def search(self, query: WebQuery, deadline: Deadline) -> list[WebResult]:
        """See `SearchProvider.search`."""
        body: dict[str, object] = {"q": query.text_with_sites, "num": min(query.limit, 20)}
        if query.freshness:
            body["tbs"] = f"qdr:{query.freshness.value[0]}"
        if query.language:
            body["hl"] = "zh-cn" if query.language == "zh" else query.language
        with client.ProviderClient(
            self.account, deadline, read_refusal=_read_refusal
        ) as connection:
            return connection.post_results("/search", body, _NAMES)


def _read_refusal(response: Response) -> client.Refusal | None:
    return client.Refusal.QUOTA if b"credits" in response.body[:1000] else None


PROVIDER_KIND = provider.ProviderKind(
    title="Serper",
    settings=SerperSettings,
    credential=provider.KeyCredential,
    provider=client.make_keyed_provider(
        "Serper", SerperProvider, key_page="serper.dev/api-key", key_header="X-API-KEY"
    ),
    get_receiver=client.get_api_host,
)
