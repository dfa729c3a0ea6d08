"""`/api/admin/document-sets` for those who look after sets, and `/api/document-sets` for those who search in them."""

from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.dependencies import (
    DatabaseDependency,
    ReadersDependency,
    SearchDependency,
    SetsDependency,
)
from backend.api.request_context import RequestContextDependency
from backend.schemas.document_set import (
    DocumentSetResponse,
    MatchingResponse,
    VisibleSetResponse,
)
from backend.sources.document_sets import (
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    LONGEST_RULE,
    MOST_READERS,
    MOST_RULES,
    SetDraft,
)
from backend.store.documents import document_sets
from indexing.index.protocols import Filters

router = APIRouter()
_SETS = "/api/admin/document-sets"
_TAKEN: dict[int | str, dict[str, Any]] = {409: openapi.describe_problem("The name is taken")}

Texts: TypeAlias = Annotated[
    tuple[Annotated[str, Field(max_length=LONGEST_RULE)], ...], Field(max_length=MOST_RULES)
]


class RulesBody(BaseModel):
    """A document belongs to a set by any one of these."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"folders": ["handbook:people/"]}]},
    )

    sources: Texts = ()
    folders: Texts = Field(default=(), description="Each as SOURCE:FOLDER: what lies below")
    tags: Texts = Field(default=(), description="Each as key=value, or SOURCE:key=value")
    documents: Texts = Field(default=(), description="Each by its id")

    def to_draft(self) -> SetDraft:
        return SetDraft(**{"name": "", **self.model_dump()})


class SetBody(RulesBody):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "name": "Policies",
                    "description": "What everybody has to know",
                    "readers": ["public"],
                    "sources": ["policies"],
                    "folders": ["handbook:people/"],
                }
            ]
        },
    )

    name: Annotated[str, Field(max_length=LONGEST_NAME)]
    description: Annotated[str, Field(max_length=LONGEST_DESCRIPTION)] = ""
    readers: Annotated[tuple[str, ...], Field(max_length=MOST_READERS)] = Field(
        default=(),
        description="Reader tokens of those to whom the set is shown; none: everybody",
    )


@router.get("/api/document-sets", summary="List the document sets that you may search in")
@requires(Permission.SEARCH)
def list_visible_sets(
    readers: ReadersDependency,
    database: DatabaseDependency,
    service: SearchDependency,
    context: RequestContextDependency,
) -> list[VisibleSetResponse]:
    """Those that are shown to you, each with the number of documents of it that you may read."""
    names = document_sets.list_visible(database, readers).values()
    deadline = service.deadline(context.cancel_token)
    counts = service.index.facets(Filters(), readers, deadline).sets if names else {}
    about = document_sets.list_descriptions(database, names)
    return [
        VisibleSetResponse(
            name=name, description=about.get(name, ""), documents=counts.get(name, 0)
        )
        for name in names
    ]


@router.get(_SETS, summary="List the document sets that you look after")
@requires(Permission.SOURCES)
def list_document_sets(sets: SetsDependency) -> list[DocumentSetResponse]:
    """All for an admin; for a source manager those wholly of their own sources."""
    return sets.list_sets()


@router.post(_SETS, status_code=201, responses=_TAKEN, summary="Add a document set")
@requires(Permission.SOURCES)
def add_document_set(
    body: SetBody, sets: SetsDependency, response: Response
) -> DocumentSetResponse:
    """Its documents are updated in the background, without embedding anything."""
    added = sets.add(body.to_draft())
    response.headers["Location"] = f"{_SETS}/{added.name}"
    return added


@router.post(f"{_SETS}/count", summary="Count the documents that rules select")
@requires(Permission.SOURCES)
def count_matching(body: RulesBody, sets: SetsDependency) -> MatchingResponse:
    """Those that the index holds now, whoever may read them."""
    return sets.count_matching(body.to_draft())


@router.get(
    f"{_SETS}/{{name}}", summary="Show a document set, and how far its documents are updated"
)
@requires(Permission.SOURCES)
def show_document_set(name: str, sets: SetsDependency) -> DocumentSetResponse:
    return sets.get(name)


@router.put(f"{_SETS}/{{name}}", responses=_TAKEN, summary="Change a document set")
@requires(Permission.SOURCES)
def change_document_set(name: str, body: SetBody, sets: SetsDependency) -> DocumentSetResponse:
    """Replace all that is said of it. Only documents of rules that were changed are updated."""
    return sets.change(name, body.to_draft())


@router.delete(f"{_SETS}/{{name}}", status_code=204, summary="Remove a document set")
@requires(Permission.SOURCES)
def remove_document_set(name: str, sets: SetsDependency) -> None:
    """Nobody finds it from then on. Its documents stay."""
    sets.remove(name)
