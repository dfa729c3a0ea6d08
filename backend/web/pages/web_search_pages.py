"""The page on which admins switch the web on, set its providers, try them, and say which domains may be in it."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from backend.api.authorization import Permission, requires
from backend.api.dependencies import WebSearchServiceDependency
from backend.api.languages import find_language
from backend.schemas.web_search import (
    WebProviderKindResponse,
    WebProviderResponse,
    WebSettingsResponse,
)
from backend.web.source_forms import NOTHING, SourceForm, build_model_form
from backend.web.templates import page, part
from backend.web_search.providers.registry import PROVIDER_KINDS
from backend.web_search.service import MOST_DOMAINS, MOST_PER_MINUTE, TEST_QUERY, WebSearchService

WEB_SEARCH = "/web-search"
_FIRST_KIND = "tavily"

router = APIRouter(include_in_schema=False)


@router.get(WEB_SEARCH)
@requires(Permission.ADMIN)
def web_search_page(
    request: Request,
    service: WebSearchServiceDependency,
    add: Annotated[str, Query(max_length=100)] = _FIRST_KIND,
) -> Response:
    """Render the rules, the providers, and the form for a new one of the kind `add`."""
    kind = add if add in PROVIDER_KINDS else _FIRST_KIND
    values = {
        "web": _read_settings(service),
        "kinds": list(map(WebProviderKindResponse.of, PROVIDER_KINDS)),
        "chosen": WebProviderKindResponse.of(kind),
        "form": build_provider_form(kind),
        "most_domains": MOST_DOMAINS,
        "test_query": TEST_QUERY,
    }
    return page(request, "web_search.html", "people", values)


@router.get(f"{WEB_SEARCH}/providers")
@requires(Permission.ADMIN)
def web_providers_part(request: Request, service: WebSearchServiceDependency) -> Response:
    """Render the part of the page that actions change."""
    values = {"web": _read_settings(service)}
    return part(find_language(request), "web_providers.html", values)


@router.get("/web-provider/{name}")
@requires(Permission.ADMIN)
def web_provider_page(name: str, request: Request, service: WebSearchServiceDependency) -> Response:
    """Render the form of one provider. Raises NotFoundError: there is none of this name."""
    provider = service.find(name)
    kind = provider.values.kind
    values = {
        "provider": WebProviderResponse.from_stored(provider),
        "limit": provider.values.per_minute or "",
        "form": build_provider_form(kind, provider.values.settings)
        if kind in PROVIDER_KINDS
        else None,
        "chosen": WebProviderKindResponse.of(kind) if kind in PROVIDER_KINDS else None,
        "most_per_minute": MOST_PER_MINUTE,
    }
    return page(request, "web_provider.html", "people", values)


def build_provider_form(kind: str, settings: Mapping[str, object] = NOTHING) -> SourceForm:
    """Build the form of a provider of this kind, which exists, with its stored settings."""
    known = PROVIDER_KINDS[kind]
    return build_model_form(kind, known.title, known.settings, known.credential, settings)


def _read_settings(service: WebSearchService) -> WebSettingsResponse:
    return WebSettingsResponse.of_stored(service.read_rules(), service.list_providers())
