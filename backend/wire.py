"""What programs are told, as JSON: the shapes of `--json`, and of HTTP answers."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict


class Wire(BaseModel):
    model_config = ConfigDict(frozen=True)


class WhyWire(Wire):
    variant: str
    leg: str
    rank: int


class ResultWire(Wire):
    number: int
    document_id: str
    title: str
    source: str
    link: str
    updated_at: datetime | None
    content: str
    score: float
    why: tuple[WhyWire, ...]


class SearchWire(Wire):
    query: str
    results: tuple[ResultWire, ...]
    seconds: float


class CitationWire(Wire):
    number: int
    document_id: str
    title: str
    link: str
    quote: str
    section: int
    span: tuple[int, int]
    score: float
    verdict: str


class AnswerWire(Wire):
    question: str
    answer: str
    model: str | None
    citations: tuple[CitationWire, ...]
    seconds: float


class DocumentWire(Wire):
    id: str
    title: str
    source: str
    link: str
    readers: tuple[str, ...]
    chunks: int
    updated_at: datetime | None


class PlaceWire(Wire):
    page: int | None
    heading_path: tuple[str, ...]
    sheet: str | None
    rows: tuple[int, int] | None
    span: tuple[int, int] | None


class SectionWire(Wire):
    kind: str
    text: str
    link: str | None
    place: PlaceWire


class ShownWire(Wire):
    id: str
    title: str
    source: str
    link: str
    readers: tuple[str, ...]
    updated_at: datetime | None
    sections: tuple[SectionWire, ...]


class FailureWire(Wire):
    source: str
    item: str
    reason: str
    tries: int


class SourceWire(Wire):
    name: str
    kind: str
    settings: dict[str, object]
    documents: int
    failures: int
    state: str
    last_run: datetime | None


class UnreadableWire(Wire):
    item: str
    reason: str


class SyncWire(Wire):
    source: str
    documents: int
    chunks: int
    embedded: int
    unchanged: int
    amended: int
    deleted: int
    restored: int
    unreadable: tuple[UnreadableWire, ...]
    unreadable_count: int
    error: str | None
    seconds: dict[str, float]


class CheckWire(Wire):
    name: str
    state: Literal["ok", "warning", "failed", "off"]
    detail: str
    advice: str | None = None
