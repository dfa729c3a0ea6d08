"""`/api/documents` for programs that put documents in, and `/api/ingestion`: what becomes of these.

Only sources of the kind `ingest` take documents. Who may manage such a source, by a token of the scope `ingest`, may do all of it.
"""

import hashlib
from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Body, Depends, Header, Query, Request
from pydantic import ValidationError

from backend.api import openapi
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import DatabaseDependency, choose_sources
from backend.api.multipart import read_file_with
from backend.api.problem_details import Problem, problem
from backend.schemas.ingestion import (
    PushedDeletionResponse,
    PushedDocumentResponse,
    PushedDocumentsResponse,
    PushResponse,
)
from backend.schemas.new_document import (
    MOST_DOCUMENTS,
    DocumentsBody,
    LocalId,
    NewFile,
    find_faults,
)
from backend.sources.ingestion import PROGRESS, IngestService, RequestMark
from backend.store.documents.pushed_documents import PushedState

router = APIRouter()
_DOCUMENTS = "/api/documents"
_METADATA = "metadata"
MOST_LISTED = 1_000
_CONFLICT: dict[int | str, Any] = {
    409: openapi.describe_problem(
        "The source takes no documents, or the key came with another request"
    )
}
_FILE_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": [_METADATA, "file"],
                    "properties": {
                        _METADATA: {
                            "type": "string",
                            "contentMediaType": "application/json",
                            "contentSchema": {"$ref": "#/components/schemas/NewFile"},
                        },
                        "file": {"type": "string", "format": "binary"},
                    },
                },
                "example": {
                    _METADATA: '{"source": "tickets", "id": "manual-c40", "title": "Service manual C40",'
                    ' "readers": ["group:support"]}',
                    "file": "manual.pdf",
                },
            }
        },
    }
}
SourceQuery: TypeAlias = Annotated[str, Query(max_length=100)]
Key: TypeAlias = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern="^[!-~]+$",
        description="The same request with the same key counts once within a day, and is answered alike",
    ),
]


async def mark_request(request: Request, key: Key = None) -> RequestMark:
    """Return by what a request is known again: its method, its path, its query and all of its body."""
    asked = (request.method, request.url.path, request.url.query)
    parts = (*(each.encode() for each in asked), await request.body())
    return RequestMark(digest=_make_digest(parts), key=key)


def _make_digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in parts)).hexdigest()


def get_ingest_service(asker: AskerDependency, database: DatabaseDependency) -> IngestService:
    return IngestService(database, asker.actor, choose_sources(asker))


Mark: TypeAlias = Annotated[RequestMark, Depends(mark_request)]
IngestDependency = Annotated[IngestService, Depends(get_ingest_service)]


@router.post(
    _DOCUMENTS,
    status_code=202,
    responses=_CONFLICT,
    summary="Put documents in, each with its readers",
)
@requires(Permission.INGEST)
def push_documents(service: IngestDependency, body: DocumentsBody, mark: Mark) -> PushResponse:
    """A document of an id that is there already takes its place. One that is not valid is refused by itself: look at `results`. Those
    that are accepted are stored when this is answered, and found within seconds."""
    return service.push(body.source, body.documents, mark)


@router.post(
    f"{_DOCUMENTS}/file",
    status_code=202,
    responses=_CONFLICT,
    openapi_extra=_FILE_FORM,
    summary="Put a file in as a document",
)
@requires(Permission.INGEST)
def push_file(
    service: IngestDependency,
    body: Annotated[bytes, Body(media_type="multipart/form-data")],
    key: Key = None,
    content_type: Annotated[str, Header(include_in_schema=False)] = "",
) -> PushResponse:
    """A form with what is said of the file in the field `metadata`, as JSON, and one file of at most 20,000,000 bytes. It is read soon: its state
    then is `indexed` or `failed`. What it says is kept, not its bytes."""
    said, file = read_file_with(content_type, body, _METADATA)
    # Each try of a form has another boundary: it is known by what it says.
    parts = (said.encode(), file.name.encode(errors="replace"), file.data)
    mark = RequestMark(digest=_make_digest(parts), key=key)
    return service.push_file(_read_metadata(said), file, mark)


def _read_metadata(said: str) -> NewFile:
    try:
        return NewFile.model_validate_json(said)
    except ValidationError as error:
        faults = tuple(
            each.model_copy(update={"where": f"{_METADATA}.{each.where}"})
            for each in find_faults(error)
        )
        refused = problem(422, "What is said of the file is not valid.", "See errors.")
        raise Problem(refused.model_copy(update={"errors": faults})) from None


@router.delete(
    _DOCUMENTS, status_code=202, responses=_CONFLICT, summary="Delete documents that were put in"
)
@requires(Permission.INGEST)
def delete_documents(
    service: IngestDependency,
    source: SourceQuery,
    ids: Annotated[list[LocalId], Query(alias="id", min_length=1, max_length=MOST_DOCUMENTS)],
    mark: Mark,
) -> PushedDeletionResponse:
    """By their ids in the source, each as a parameter `id`. Those that are not there are named; the others are found by nobody within seconds."""
    return service.delete(source, ids, mark)


@router.delete(
    f"{_DOCUMENTS}/{{document_id:path}}",
    status_code=204,
    responses=_CONFLICT,
    summary="Delete a document that was put in",
)
@requires(Permission.INGEST)
def delete_document(service: IngestDependency, document_id: str, mark: Mark) -> None:
    """By its id among all documents, `SOURCE:ID`. Nobody finds it within seconds."""
    service.delete_one(document_id, mark)


@router.get(PROGRESS, summary="List documents that were put in, with what became of them")
@requires(Permission.INGEST)
def list_pushed_documents(
    service: IngestDependency,
    source: SourceQuery,
    state: PushedState | None = None,
    after: Annotated[str, Query(max_length=10_000, description="`next` of the last answer")] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
) -> PushedDocumentsResponse:
    """`waiting`: stored, and not indexed yet. `deleting`: found until a sync removes it. `failed`: see `problem`."""
    return service.list_documents(source, after, limit, state)


@router.get(
    f"{PROGRESS}/{{document_id:path}}", summary="Say what became of a document that was put in"
)
@requires(Permission.INGEST)
def show_pushed_document(service: IngestDependency, document_id: str) -> PushedDocumentResponse:
    """By its id among all documents, `SOURCE:ID`."""
    return service.get(document_id)
