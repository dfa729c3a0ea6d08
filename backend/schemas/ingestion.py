"""JSON of what becomes of the documents that programs put in."""

from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self

from backend.schemas.base import Schema, with_example
from backend.schemas.system import FieldError

if TYPE_CHECKING:
    from backend.store.documents.pushed_documents import PushedDocumentState

_MOMENT = "2026-03-02T09:30:00Z"


class DocumentResult(Schema):
    """What became of one document of a request."""

    model_config = with_example(
        index=0, id="ticket-4711", outcome="accepted", document_id="tickets:ticket-4711", errors=[]
    )

    index: int
    """Its place in the request, counted from 0."""
    id: str | None
    """As it was given; null where it is not valid."""
    outcome: Literal["accepted", "unchanged", "refused"]
    """`accepted`: it will be indexed. `unchanged`: it was put in like this before. `refused`: see `errors`; nothing of it is kept."""
    document_id: str | None
    """Its id among all documents; null if it was refused."""
    errors: tuple[FieldError, ...]
    """What to correct."""


class PushResponse(Schema):
    """The documents are stored, and will be found within seconds by those who may read them."""

    model_config = with_example(
        source="tickets",
        accepted=1,
        unchanged=0,
        refused=0,
        results=[DocumentResult.example().model_dump(mode="json")],
        progress="/api/ingestion?source=tickets&state=waiting",
        notice=None,
    )

    source: str
    accepted: int
    unchanged: int
    refused: int
    results: tuple[DocumentResult, ...]
    """In the order of the request."""
    progress: str
    """Where those are listed that are not indexed yet."""
    notice: str | None
    """Why they are not indexed now, such as that the source is paused."""


class PushedDeletionResponse(Schema):
    """The documents are found by nobody within seconds."""

    model_config = with_example(source="tickets", deleted=["ticket-4711"], missing=["ticket-1"])

    source: str
    deleted: tuple[str, ...]
    missing: tuple[str, ...]
    """Ids of which there is no document."""


class PushedDocumentResponse(Schema):
    model_config = with_example(
        id="ticket-4711",
        document_id="tickets:ticket-4711",
        title="The saw stops after ten minutes",
        state="indexed",
        problem=None,
        pushed_at=_MOMENT,
    )

    id: str
    """As the program gave it."""
    document_id: str
    title: str
    state: Literal["waiting", "indexed", "failed", "deleting"]
    problem: str | None
    """Why it is not indexed, if it has failed; put it in again once that is corrected."""
    pushed_at: datetime
    """When it was last changed by a request."""

    @classmethod
    def from_state(cls, found: "PushedDocumentState") -> Self:
        return cls(
            id=found.document_id.partition(":")[2],
            document_id=found.document_id,
            title=found.title,
            state=found.state,
            problem=found.problem,
            pushed_at=found.pushed_at,
        )


class PushedDocumentsResponse(Schema):
    model_config = with_example(
        documents=[PushedDocumentResponse.example().model_dump(mode="json")], next=None
    )

    documents: tuple[PushedDocumentResponse, ...]
    """By id."""
    next: str | None
    """The id to pass as `after` for the next page; null at the end."""
