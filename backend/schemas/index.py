"""JSON of `quarry reindex` and `quarry move`."""

from backend.schemas.base import Schema


class IndexVersionResponse(Schema):
    model: str
    version: str
    precision: str
    dimension: int


class ReindexStatus(Schema):
    active: IndexVersionResponse | None
    building: IndexVersionResponse | None
    running: bool
    documents: int
    """In the index version that is being built; some of them may have changed since."""
    total: int


class ReindexAbandoned(Schema):
    abandoned: IndexVersionResponse | None
    """Null: nothing was being built."""


class MissingDocument(Schema):
    document_id: str
    reason: str


class ReindexReport(Schema):
    model: str
    documents: int
    chunks: int
    copied: int
    """Documents whose chunks and vectors were kept."""
    deleted: int
    amended: int
    missing: tuple[MissingDocument, ...]
    seconds: float
    advice: str | None


class MoveReport(Schema):
    to: str
    copied: int
    deleted: int
    documents: int
    chunks: int
    asked: int
    """Queries that were compared between both indexes."""
    words: float
    vectors: float
    advice: str
