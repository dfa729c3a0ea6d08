"""The result page of a search engine, by the template of its address: fetched as a browser shows it, and read as HTML."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote_plus, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from backend.web_search.providers.provider import FetchRendered, ProviderKind
from backend.web_search.providers.result_page_html import read_result_page
from backend.web_search.results import WebQuery, WebResult
from connectors.http_client.address_guard import AddressNotAllowedError, validate_url
from connectors.registry import NoCredential
from indexing.runtime.deadline import Deadline

PLACE = "%s"
"""Where the query stands in a template."""


def _check_template(template: str) -> str:
    address = template.strip()
    if address.count(PLACE) != 1:
        raise ValueError(f"Write {PLACE} once, where the query stands.")
    if PLACE in address.partition("://")[2].partition("/")[0]:
        raise ValueError("The query cannot stand in the name of the host.")
    try:
        url = validate_url(address.replace(PLACE, "query"))
    except AddressNotAllowedError as error:
        raise ValueError(str(error)) from error
    if url.scheme != "https":
        raise ValueError("The address must begin with https://.")
    return address


class ResultPageSettings(BaseModel):
    """The result page of a search engine, read as a person reads it: no key, no account."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Annotated[str, AfterValidator(_check_template)] = Field(
        title="URL",
        description="The address of the result page, with %s in place of the query:"
        " https://search.example.com/search?q=%s",
    )


@dataclass(frozen=True, slots=True)
class ResultPageProvider:
    name: str
    template: str
    fetch_rendered: FetchRendered

    def search(self, query: WebQuery, deadline: Deadline) -> list[WebResult]:
        """See `SearchProvider.search`. The template has no place for an age and a language: results are of any."""
        deadline.check()
        url = self.template.replace(PLACE, quote_plus(query.text_with_sites))
        html = self.fetch_rendered(url, deadline)
        return read_result_page(html, url, self.name)[: query.limit]


def _make_provider(
    name: str, settings: ResultPageSettings, _: NoCredential, fetch_rendered: FetchRendered
) -> ResultPageProvider:
    return ResultPageProvider(name, settings.url, fetch_rendered)


def _get_host(settings: ResultPageSettings) -> str:
    return urlsplit(settings.url).hostname or settings.url


PROVIDER_KIND = ProviderKind(
    title="Local: a result page",
    settings=ResultPageSettings,
    credential=NoCredential,
    provider=_make_provider,
    get_receiver=_get_host,
    per_minute=20,
    notice="The page is asked for as a browser asks for it. The terms of use of most search engines restrict or forbid"
    " automated queries: read those of this one before you add it.",
)
