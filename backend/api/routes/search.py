"""`POST /api/search`: the best passages, and by what they can be narrowed."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

from fastapi import FastAPI
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from backend.api import openapi_examples
from backend.api.authentication import AskerIs
from backend.api.authorization import Rule, ruled
from backend.api.dependencies import ContainerIs
from backend.api.request_context import VisitIs
from backend.api.search_filters import FiltersBody
from backend.container import Container
from backend.schemas import conversion
from backend.schemas.models import FacetsWire, FoundWire, ResultWire
from connectors.document import Readers
from indexing.index.person_keys import PersonCount
from indexing.index.protocols import DateRange, Facets, Filters
from indexing.runtime.deadline import Deadline

LONGEST_QUERY = 2_000
MOST_PEOPLE = 200
"""That facets tell of: a company's mail names thousands, and nobody chooses from a list of these."""


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("write what to look for")
    return text


class SearchBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [openapi_examples.SEARCH]}
    )

    query: Annotated[
        str,
        # What the check asks for, as the schema can say it.
        Field(max_length=LONGEST_QUERY, json_schema_extra={"pattern": r"\S"}),
        AfterValidator(_said),
    ]
    filters: FiltersBody = FiltersBody()
    limit: int = Field(default=10, ge=1, le=200, strict=True)
    explain: bool = Field(
        default=False, strict=True, description="Tell what put each result where it is"
    )


def add_routes(app: FastAPI) -> None:
    app.post(
        "/api/search",
        responses={200: openapi_examples.answer(openapi_examples.FOUND)},
        summary="Find the passages that match best",
    )(search)


@ruled(Rule.READER)
def search(body: SearchBody, asker: AskerIs, container: ContainerIs, visit: VisitIs) -> FoundWire:
    """The same results as `quarry search --json`, of what the asker may read."""
    visit.asked = body.query
    deadline = Deadline.after(container.settings.search_seconds, visit.cancel_token)
    filters = body.filters.filters()
    began = time.perf_counter()
    request = replace(container.request(body.query, asker.readers, filters), deadline=deadline)
    docs = container.search_tool().find_sections(request, body.limit)
    told = conversion.search(body.query, docs, time.perf_counter() - began)
    results = told.results if body.explain else tuple(map(_unexplained, told.results))
    counted = facets(container, filters, asker.readers, deadline)
    return FoundWire(query=told.query, results=results, seconds=told.seconds, facets=counted)


def facets(
    container: Container, filters: Filters, readers: Readers, deadline: Deadline
) -> FacetsWire:
    """What could be chosen: each field counted under the filters of all the others.

    Raises:
        DeadlineExceededError, TemporarilyUnavailableError, ActionRequiredError: the index did not answer.
    """
    known: dict[Filters, Facets] = {}

    def counted(under: Filters) -> Facets:
        if under not in known:
            known[under] = container.index.facets(under, readers, deadline)
        return known[under]

    return conversion.facets(
        sources=counted(replace(filters, sources=None)),
        media_types=counted(replace(filters, media_types=None)),
        people=_people(filters, counted),
        months=counted(replace(filters, updated=DateRange())),
    )


def _people(
    filters: Filters, counted: Callable[[Filters], Facets]
) -> list[tuple[str, PersonCount]]:
    """Those of most documents, of equals by name, and whoever is chosen."""
    chosen = filters.people or frozenset()
    counts = dict(counted(replace(filters, people=None)).people)
    if not chosen <= counts.keys():
        # The index tells of those of most documents; among those of the chosen they are.
        counts |= {key: one for key, one in counted(filters).people.items() if key in chosen}
    ranked = sorted(counts.items(), key=lambda item: (-item[1].documents, item[1].name, item[0]))
    return ranked[:MOST_PEOPLE] + [each for each in ranked[MOST_PEOPLE:] if each[0] in chosen]


def _unexplained(result: ResultWire) -> ResultWire:
    return result.model_copy(update={"why": ()})
