"""`POST /api/search`: the best passages, and by what they can be narrowed."""

import time
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from backend.access.shared_file_readers import resolve_in
from backend.api.authorization import Permission, requires
from backend.api.dependencies import (
    AssistantIdField,
    AssistantsDependency,
    ChatDependency,
    ReadersDependency,
)
from backend.api.request_context import RequestContextDependency
from backend.composition.answers_from_files import add_files, name_sources
from backend.composition.chat import ChatService
from backend.conversations.assistant_service import AssistantService
from backend.files.attached_files import find_attached
from backend.schemas.search import (
    FacetsResponse,
    FiltersBody,
    SearchResponse,
    SearchResponseWithFacets,
    SearchResult,
)
from backend.search.facets import count_found
from backend.search.models import EVERY_KIND, DocumentNumbers, FilterKind, Spelling
from backend.search.query_syntax import parse_query
from backend.search.search_service import (
    GroupedRanking,
    Grouping,
    SearchService,
    SectionGroup,
    find_grouped,
)
from backend.store.chat.assistants import DEFAULT_ID
from connectors.access import Readers

router = APIRouter()
LONGEST_QUERY = 2_000
_AS_THEY_ARE: Mapping[str, str] = MappingProxyType({})


def _check_query(text: str) -> str:
    if not text.strip():
        raise ValueError("write what to look for")
    return text


class SearchBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "query": "parental leave",
                    "filters": {"sources": ["handbook"], "since": "2025-01-01"},
                    "limit": 5,
                    "explain": True,
                }
            ]
        },
    )

    query: Annotated[
        str,
        # What the check asks for, as the schema can say it.
        Field(max_length=LONGEST_QUERY, json_schema_extra={"pattern": r"\S"}),
        AfterValidator(_check_query),
    ]
    filters: FiltersBody = FiltersBody()
    assistant: AssistantIdField = Field(
        default=DEFAULT_ID, description="Only what this assistant searches, with its own files"
    )
    limit: int = Field(default=10, ge=1, le=200, strict=True)
    explain: bool = Field(
        default=False, strict=True, description="Return the evidence for the rank of each result"
    )
    spelling: Spelling = Field(
        default=Spelling.CORRECT_UNKNOWN,
        description="Whether unknown words are searched as the nearest known ones",
    )
    infer: frozenset[FilterKind] = Field(
        default=EVERY_KIND,
        description="What words of the query may be read as, such as “in January 2026” as a date: what they mean"
        " stands first. An empty list searches them as words alone",
    )
    group: Grouping = Field(
        default=Grouping.PASSAGE,
        description="What one result is: a passage, or a document by its best passage, with the others in"
        " `further`; `limit` counts results",
    )


@router.post(
    "/api/search",
    summary="Find the passages that match best",
)
@requires(Permission.SEARCH)
def search(
    body: SearchBody,
    readers: ReadersDependency,
    chat: ChatDependency,
    assistants: AssistantsDependency,
    context: RequestContextDependency,
) -> SearchResponseWithFacets:
    """Return the results of `quarry search --json`, limited to documents that the asker may read."""
    context.query = body.query
    service, names = chat.search, _AS_THEY_ARE
    # What the default assistant searches is never limited, and it has no files.
    if body.assistant != DEFAULT_ID:
        service, readers, names = _choose_search(chat, assistants, body.assistant)
    deadline, filters = service.deadline(context.cancel_token), body.filters.filters()
    began = time.perf_counter()
    parsed = parse_query(body.query)
    request = service.request(parsed, readers, filters, deadline, body.spelling, body.infer)
    tool = service.tool(None, DocumentNumbers())
    found = find_grouped(tool, request, body.limit, body.group)
    if names:
        found = _name_sources(found, names)
    response = SearchResponse.from_docs(
        parsed,
        found.docs,
        time.perf_counter() - began,
        request.corrected,
        found.ranking.inferred,
    )
    results = response.results if body.explain else tuple(map(_unexplained, response.results))
    counts = count_found(tool, request, found.ranking, body.limit)
    return SearchResponseWithFacets(
        query=body.query,
        results=results,
        seconds=response.seconds,
        filters=response.filters,
        notes=response.notes,
        corrected=response.corrected,
        inferred=response.inferred,
        facets=FacetsResponse.from_facets(counts),
    )


def _choose_search(
    chat: ChatService, assistants: AssistantService, assistant_id: str
) -> tuple[SearchService, Readers, Mapping[str, str]]:
    """Return what searches as an assistant does for its answers, what may be found, with its own files, and how
    the source of each of these is called."""
    settings = assistants.find_settings(assistant_id)
    database, user, holders = assistants.database, assistants.user, settings.holders
    readers = resolve_in(database, user.readers, user.owner, holders)
    attached = find_attached(database, user.owner, (), holders, readers)
    names = attached.source_names if attached else {}
    return chat.search_within(add_files(settings, attached)), readers, names


def _name_sources(found: GroupedRanking, names: Mapping[str, str]) -> GroupedRanking:
    return replace(found, groups=tuple(_name_source(group, names) for group in found.groups))


def _name_source(group: SectionGroup, names: Mapping[str, str]) -> SectionGroup:
    best, *further = name_sources((group.best, *group.further), names)
    return SectionGroup(best, tuple(further))


def _unexplained(result: SearchResult) -> SearchResult:
    further = tuple(one.model_copy(update={"why": ()}) for one in result.further)
    return result.model_copy(update={"why": (), "further": further})
