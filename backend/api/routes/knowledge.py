"""`/api/knowledge`: what research has found out, for whoever may read all that it rests on."""

from collections.abc import Iterable
from typing import Annotated, Self, TypeAlias

from fastapi import APIRouter, Depends, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.dependencies import ChatDependency
from backend.api.knowledge_dependencies import (
    LONGEST_QUERY,
    ItemId,
    KnowledgeDependency,
    PlaceDependency,
)
from backend.api.list_positions import LONGEST_POSITION, format_position, read_position
from backend.research.knowledge.kept_knowledge import KeptItem
from backend.research.knowledge.service import KnowledgeService
from backend.schemas.kept_knowledge import (
    ImportReportResponse,
    KnowledgeItemResponse,
    KnowledgeResponse,
)
from backend.schemas.knowledge import KnowledgeFile, export_knowledge, import_knowledge
from backend.store.research.knowledge_records import LONGEST_TEXT, OWN, ItemPosition
from indexing.text.normalization import is_visible

router = APIRouter()
MOST_LISTED = 100
_ALL = "/api/knowledge"
_ONE = f"{_ALL}/{{item_id}}"
_FILE = {"Content-Disposition": 'attachment; filename="knowledge.json"'}
_FILE_SCHEMA = {"application/json": {"schema": {"$ref": "#/components/schemas/KnowledgeFile"}}}

BeforeField: TypeAlias = Annotated[
    str | None,
    Query(max_length=LONGEST_POSITION, description="What `next` of the page before says"),
]


async def _read_body(request: Request) -> bytes:
    """Return it as it was sent: a long file is read by the thread of the route, and other requests go on meanwhile."""
    return await request.body()


BodyDependency = Annotated[bytes, Depends(_read_body)]


def _check_text(text: str) -> str:
    if not is_visible(text):
        raise ValueError("write it with visible characters")
    return text


CorrectedText: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=LONGEST_TEXT), AfterValidator(_check_text)
]


class CorrectionBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"answer": "Parents have 28 weeks of paid leave."}]},
    )

    question: CorrectedText | None = None
    answer: CorrectedText | None = None

    @model_validator(mode="after")
    def _check_any(self) -> Self:
        if self.question is None and self.answer is None:
            raise ValueError("give a question, an answer, or both")
        return self


@router.get(_ALL, summary="List or search what research has found out")
@requires(Permission.ASK)
def list_knowledge(
    knowledge: KnowledgeDependency,
    place: PlaceDependency,
    chat: ChatDependency,
    query: Annotated[
        str, Query(max_length=LONGEST_QUERY, description="Only what speaks to this, nearest first")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    before: BeforeField = None,
) -> KnowledgeResponse:
    """What you may not read all sources of is not there: it is neither listed nor counted. Without a place, all that is yours and that of your projects."""
    places = None if place is None else (place,)
    if query.strip():
        found = knowledge.search(query, places, chat.engine.embedding.sentence_model, limit)
        return KnowledgeResponse(items=_show(knowledge, found), next=None)
    position = None if before is None else ItemPosition(*read_position(before))
    page = knowledge.list_page(places, position, limit)
    end = page.next
    return KnowledgeResponse(
        items=_show(knowledge, page.items),
        next=None if end is None else format_position(end.made_at, end.id),
    )


@router.post(
    _ALL,
    status_code=201,
    responses={409: openapi.describe_problem("More would be kept in one place than allowed")},
    openapi_extra={"requestBody": {"required": True, "content": _FILE_SCHEMA}},
    summary="Import what was exported",
)
@requires(Permission.ASK)
def import_items(
    body: BodyDependency, knowledge: KnowledgeDependency, place: PlaceDependency
) -> ImportReportResponse:
    """Into a conversation or a project, or else for yourself. A reference to a document is kept only if you may read that, and it says so."""
    report = knowledge.import_items(place or OWN, import_knowledge(body))
    return ImportReportResponse.from_report(report)


@router.get(
    f"{_ALL}/export",
    response_class=Response,
    responses={
        200: {
            "description": "A file that can be imported",
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/KnowledgeFile"},
                    "example": KnowledgeFile.example().model_dump(mode="json"),
                }
            },
        }
    },
    summary="Export what research has found out",
)
@requires(Permission.ASK)
def export_items(
    knowledge: KnowledgeDependency, place: PlaceDependency, before: BeforeField = None
) -> Response:
    """What you may read all sources of, the newest first: at most 1,000 findings. `next` in the file, given as `before`, returns those that follow."""
    position = None if before is None else ItemPosition(*read_position(before))
    page = knowledge.export_page(None if place is None else (place,), position)
    end = page.next
    following = None if end is None else format_position(end.made_at, end.id)
    exported = export_knowledge(page.items, following)
    return Response(exported, headers=_FILE, media_type="application/json")


@router.get(_ONE, summary="Read one finding")
@requires(Permission.ASK)
def get_item(item_id: ItemId, knowledge: KnowledgeDependency) -> KnowledgeItemResponse:
    """One that you may not read all sources of and one that does not exist are answered alike."""
    return _show_one(knowledge, knowledge.get(item_id))


@router.patch(
    _ONE,
    responses={
        403: openapi.describe_problem("It is somebody else's"),
        409: openapi.describe_problem(
            "A document that it rests on was deleted, or more would be kept in one place than allowed"
        ),
    },
    summary="Correct a finding",
)
@requires(Permission.ASK)
def correct_item(
    item_id: ItemId, body: CorrectionBody, knowledge: KnowledgeDependency
) -> KnowledgeItemResponse:
    """References that no longer support what it says are dropped. What it says then counts from now on."""
    return _show_one(knowledge, knowledge.correct(item_id, body.question, body.answer))


@router.delete(
    _ONE,
    status_code=204,
    responses={403: openapi.describe_problem("It is somebody else's")},
    summary="Delete a finding",
)
@requires(Permission.ASK)
def delete_item(item_id: ItemId, knowledge: KnowledgeDependency) -> None:
    knowledge.delete(item_id)


def _show(
    knowledge: KnowledgeService, items: Iterable[KeptItem]
) -> tuple[KnowledgeItemResponse, ...]:
    return tuple(_show_one(knowledge, one) for one in items)


def _show_one(knowledge: KnowledgeService, item: KeptItem) -> KnowledgeItemResponse:
    return KnowledgeItemResponse.from_kept(item, may_change=knowledge.may_change(item))
