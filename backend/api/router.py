"""All routes of the API, put together once: that takes longer than the rest of an app, and is the same for each."""

from collections.abc import Iterable
from types import ModuleType

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute

from backend.api import openapi
from backend.api.authorization import check_permission
from backend.api.dependencies import take_turn
from backend.api.routes import (
    admin,
    ask,
    assistants,
    conversations,
    document_sets,
    documents,
    explain,
    feedback,
    files,
    health,
    ingestion,
    knowledge,
    llms_text,
    mcp,
    memories,
    metrics,
    models,
    oauth,
    oauth_metadata,
    openai_chat,
    openai_embeddings,
    openai_models,
    openai_responses,
    projects,
    references,
    research,
    search,
    shared_files,
    sharing,
    source_accounts,
    sources,
    token_budgets,
    web_search,
)

DEPENDENCIES = (
    Depends(check_permission),
    # A slot is given back before the response is sent: a client may be slow to take it.
    Depends(take_turn, scope="function"),
)
"""Of every route, also of those that pages add."""
_MODULES = (
    search,
    ask,
    references,
    research,
    conversations,
    assistants,
    projects,
    sharing,
    feedback,
    document_sets,
    ingestion,
    documents,
    files,
    shared_files,
    knowledge,
    memories,
    explain,
    sources,
    source_accounts,
    admin,
    models,
    token_budgets,
    web_search,
    openai_models,
    openai_chat,
    openai_responses,
    openai_embeddings,
    mcp,
    oauth_metadata,
    oauth,
    health,
    llms_text,
    metrics,
)


def name_operation(route: APIRoute) -> str:
    """Return what the description calls an operation: the name of its function."""
    return route.name


def make_protected_router() -> APIRouter:
    """Return a router without routes, whose routes are protected as all others are."""
    return APIRouter(
        dependencies=DEPENDENCIES,
        responses=openapi.PROBLEMS,
        generate_unique_id_function=name_operation,
    )


def _include_all(modules: Iterable[ModuleType]) -> APIRouter:
    router = make_protected_router()
    for routes in modules:
        router.include_router(routes.router, tags=[_name_group(routes)])
    return router


def _name_group(routes: ModuleType) -> str:
    """Return what the description, and clients generated from it, call the routes of a module together."""
    return routes.__name__.rpartition(".")[2].replace("_", " ")


API_ROUTER = _include_all(_MODULES)
