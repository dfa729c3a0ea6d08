"""`/api/admin/web`: whether and how the web is searched, the providers, and a try of them.

A credential is encrypted as it arrives, and no response contains it.
"""

from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import Response

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.dependencies import WebSearchServiceDependency
from backend.api.request_context import CancelTokenDependency
from backend.schemas.web_search import (
    WebOutcomeResponse,
    WebProviderKindResponse,
    WebProviderResponse,
    WebSettingsResponse,
)
from backend.web_search.providers.registry import PROVIDER_KINDS
from backend.web_search.results import Freshness
from backend.web_search.search import LONGEST_QUERY
from backend.web_search.service import (
    MOST_DOMAINS,
    MOST_PER_MINUTE,
    TEST_QUERY,
    TEST_SECONDS,
    ProviderChange,
    RulesChange,
    WebSearchService,
)
from indexing.runtime.deadline import Deadline

router = APIRouter()
_WEB = "/api/admin/web"
_PROVIDERS = f"{_WEB}/providers"
_TAKEN: dict[int | str, dict[str, Any]] = {409: openapi.describe_problem("The name is taken")}
_OFF: dict[int | str, dict[str, Any]] = {
    409: openapi.describe_problem("The web is switched off, or no provider may be asked")
}
MOST_RESULTS = 20

Values: TypeAlias = dict[str, JsonValue]
Query: TypeAlias = Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY)]
Domains: TypeAlias = Annotated[
    tuple[Annotated[str, Field(max_length=300)], ...], Field(max_length=MOST_DOMAINS)
]
KindName: TypeAlias = Annotated[
    str, Field(max_length=100, json_schema_extra={"enum": [*PROVIDER_KINDS]})
]


def _with_example(**example: JsonValue) -> ConfigDict:
    return ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [example]})


class ChangeWebBody(BaseModel):
    """What is left out stays as it is."""

    model_config = _with_example(is_on=True, blocked_domains=["example.net"])

    is_on: bool | None = None
    allowed_domains: Domains | None = Field(
        default=None,
        description="The only domains that results may be of, each with its subdomains; replaces the"
        " former list; empty: any domain",
    )
    blocked_domains: Domains | None = Field(
        default=None,
        description="Domains that results must not be of, each with its subdomains; replaces the former list",
    )
    keeps_internal_names: bool | None = Field(
        default=None, description="Keep names and codes of internal documents out of queries"
    )


class AddProviderBody(BaseModel):
    model_config = _with_example(
        kind="searxng",
        settings={"api_url": "https://searx.example.com"},
    )

    kind: KindName
    name: str | None = Field(
        default=None, max_length=100, description="By default named after its kind"
    )
    settings: Values = Field(
        default_factory=dict,
        description="Settings of the provider; GET /api/admin/web/kinds describes them for each kind",
    )
    credential: Values = Field(
        default_factory=dict,
        description="Key of the provider; GET /api/admin/web/kinds describes it for each kind",
        repr=False,
    )


class EditProviderBody(BaseModel):
    """A part that is left out stays as it is; settings and credential are replaced as a whole."""

    model_config = _with_example(is_enabled=False, per_minute=30)

    settings: Values | None = None
    credential: Values | None = Field(
        default=None, description="An empty one removes the credential", repr=False
    )
    is_enabled: bool | None = None
    per_minute: int | None = Field(
        default=None, ge=0, le=MOST_PER_MINUTE, description="0: the usual limit of its kind"
    )


class PlaceBody(BaseModel):
    model_config = _with_example(position=1)

    position: int = Field(ge=1, le=1_000, description="1: it is asked first")


class TestProviderBody(BaseModel):
    model_config = _with_example(query=TEST_QUERY)

    query: Query = TEST_QUERY


class WebSearchBody(BaseModel):
    model_config = _with_example(query="parental leave law 2026", limit=5, freshness="month")

    query: Query
    limit: int = Field(default=5, ge=1, le=MOST_RESULTS)
    freshness: Freshness | None = Field(default=None, description="How old results may be at most")
    language: str | None = Field(
        default=None, pattern="^[a-z]{2}$", description="ISO 639-1, such as `en`"
    )


@router.get(_WEB, summary="Show whether and how the web is searched, and the providers")
@requires(Permission.ADMIN)
def show_web_search(service: WebSearchServiceDependency) -> WebSettingsResponse:
    return _show(service)


@router.patch(_WEB, summary="Switch the web on or off, or change which domains may be in it")
@requires(Permission.ADMIN)
def change_web_search(
    body: ChangeWebBody, service: WebSearchServiceDependency
) -> WebSettingsResponse:
    """The next search keeps to it, in every process of the server."""
    service.change_rules(RulesChange(**body.model_dump()))
    return _show(service)


@router.get(
    f"{_WEB}/kinds",
    summary="List the kinds of provider, with the JSON schemas of their settings and credentials",
)
@requires(Permission.ADMIN)
def list_web_provider_kinds() -> list[WebProviderKindResponse]:
    return list(map(WebProviderKindResponse.of, PROVIDER_KINDS))


@router.post(
    f"{_WEB}/search", responses=_OFF, summary="Search the web, and show which provider answered"
)
@requires(Permission.ADMIN)
def try_web_search(
    body: WebSearchBody, service: WebSearchServiceDependency, cancel_token: CancelTokenDependency
) -> WebOutcomeResponse:
    """As a question would: the providers are asked in their order until one finds something."""
    deadline = Deadline.after(TEST_SECONDS, cancel_token)
    outcome = service.web.search(body.query, body.limit, body.freshness, body.language, deadline)
    return WebOutcomeResponse.from_outcome(outcome)


@router.post(_PROVIDERS, status_code=201, responses=_TAKEN, summary="Add a provider of web search")
@requires(Permission.ADMIN)
def add_web_provider(
    body: AddProviderBody, service: WebSearchServiceDependency, response: Response
) -> WebProviderResponse:
    """It is asked after all others. Faults of the settings or the credential name the field."""
    added = service.add(body.kind, body.settings, body.credential, body.name)
    response.headers["Location"] = f"{_PROVIDERS}/{quote(added.name)}"
    return WebProviderResponse.from_stored(added)


@router.patch(f"{_PROVIDERS}/{{name}}", summary="Change a provider of web search")
@requires(Permission.ADMIN)
def edit_web_provider(
    name: str, body: EditProviderBody, service: WebSearchServiceDependency
) -> WebProviderResponse:
    """Nothing is stored unless all of it is valid. A provider that waits may be asked again."""
    return WebProviderResponse.from_stored(service.edit(name, ProviderChange(**body.model_dump())))


@router.delete(f"{_PROVIDERS}/{{name}}", status_code=204, summary="Remove a provider of web search")
@requires(Permission.ADMIN)
def remove_web_provider(name: str, service: WebSearchServiceDependency) -> None:
    service.remove(name)


@router.put(
    f"{_PROVIDERS}/{{name}}/position", summary="Change the position of a provider in the order"
)
@requires(Permission.ADMIN)
def move_web_provider(
    name: str, body: PlaceBody, service: WebSearchServiceDependency
) -> WebSettingsResponse:
    service.move(name, body.position)
    return _show(service)


@router.post(f"{_PROVIDERS}/{{name}}/test", summary="Ask one provider, and show what it finds")
@requires(Permission.ADMIN)
def test_web_provider(
    name: str,
    body: TestProviderBody,
    service: WebSearchServiceDependency,
    cancel_token: CancelTokenDependency,
) -> WebOutcomeResponse:
    """Also where the web is switched off. Why it fails is part of the response."""
    deadline = Deadline.after(TEST_SECONDS, cancel_token)
    return WebOutcomeResponse.from_outcome(service.test(name, body.query, deadline))


def _show(service: WebSearchService) -> WebSettingsResponse:
    return WebSettingsResponse.of_stored(service.read_rules(), service.list_providers())
