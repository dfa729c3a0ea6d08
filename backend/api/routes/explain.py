"""`POST /api/admin/explain` and `/api/admin/look`: what administrators are shown of documents that they may not read."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from backend.access.document_existence import look_at_document
from backend.access.explanation import explain
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import DatabaseDependency
from backend.schemas.document import DocumentLookResponse
from backend.schemas.explanation import ExplanationResponse
from connectors.access import Readers, parse_reader_token

router = APIRouter()
Reader = Annotated[str, Field(max_length=1_000), AfterValidator(parse_reader_token)]
DocumentName = Annotated[
    str,
    Field(min_length=1, max_length=10_000, description="The id of a document, or its link"),
]


class ExplainBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {"document": "handbook:finance/pay.md", "readers": ["user:ann@example.com"]}
            ]
        },
    )

    document: DocumentName
    readers: tuple[Reader, ...] = Field(
        max_length=100, description="What somebody holds by themselves, such as user:<email>"
    )


@router.post(
    "/api/admin/explain",
    summary="Explain why somebody does not find a document",
)
@requires(Permission.ADMIN)
def explain_document(
    body: ExplainBody, database: DatabaseDependency, asker: AskerDependency
) -> ExplanationResponse:
    """It tells of documents that you may not read, and is in the audit."""
    own = Readers.of(*body.readers)
    found = explain(database, body.document, own, asker.actor)
    return ExplanationResponse.from_explanation(found)


class LookBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"document": "handbook:finance/pay.md"}]},
    )

    document: DocumentName


@router.post(
    "/api/admin/look",
    summary="Look whether a document exists, and who may read it",
)
@requires(Permission.ADMIN)
def look_as_administrator(
    body: LookBody, database: DatabaseDependency, asker: AskerDependency
) -> DocumentLookResponse:
    """Also of a document that you may not read; its contents are for its readers alone. Each look is in the audit."""
    return DocumentLookResponse.from_look(look_at_document(database, body.document, asker.actor))
