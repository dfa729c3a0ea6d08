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
    media_type: str
    heading_path: tuple[str, ...]
    section: int
    """Where the best passage stands: the section of the document, counted from 0."""
    span: tuple[int, int]
    """And its code points there."""
    updated_at: datetime | None
    content: str
    score: float
    why: tuple[WhyWire, ...]


class SearchWire(Wire):
    query: str
    results: tuple[ResultWire, ...]
    seconds: float


class PersonWire(Wire):
    key: str
    """By which to filter: the e-mail address in lower case, or the name where none is known."""
    name: str
    documents: int


class FacetsWire(Wire):
    """Documents that the asker may read, counted. Each field is counted under the filters of all
    others, so that another choice can be offered."""

    sources: dict[str, int]
    media_types: dict[str, int]
    people: tuple[PersonWire, ...]
    """Authors and owners: those of most documents first, at most 200, and all that were asked for."""
    months: dict[str, int]
    """Of the last change, UTC, as `2026-11`."""


class FoundWire(SearchWire):
    facets: FacetsWire


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


class ChunkWire(Wire):
    position: int
    section: int
    span: tuple[int, int]


class DocumentShownWire(ShownWire):
    media_type: str
    has_original: bool
    """Whether its file can be had, as it was when it was last synced."""
    synced_at: datetime
    chunks: tuple[ChunkWire, ...]


class DocumentsWire(Wire):
    documents: tuple[DocumentWire, ...]
    next: str | None
    """Ask for those `after` this id to go on; null at the end."""


class FailureWire(Wire):
    source: str
    document_id: str
    item: str
    """The name a person knows it by."""
    link: str | None
    reason: str
    tries: int
    last_at: datetime
    next_try: datetime | None
    """Null: at the next occasion."""


class RunWire(Wire):
    id: int
    kind: str
    state: str
    stage: str
    item: str | None
    counts: dict[str, int]
    error: str | None
    waiting_for: str | None
    next_try: datetime | None
    """When a run that waits is tried again."""
    decision: dict[str, int] | None
    """What a person is to decide about: how many documents are `held`, `listed`, `missing`."""
    started_at: datetime
    finished_at: datetime | None


class SourceWire(Wire):
    """A source, and how it stands at this moment. Its credential is told to nobody."""

    name: str
    kind: str
    settings: dict[str, object]
    has_credential: bool
    documents: int
    failures: int
    state: str
    """Of the last run; or `never synced`, `paused`, `being removed`."""
    last_run: datetime | None
    run: RunWire | None
    """The last one, or the one that is going on."""
    rate: float | None
    """Documents a second of the one that is going on."""
    decision: dict[str, int] | None
    """What a person is to decide about: how many documents are `held`, `listed`, `missing`."""
    paused_at: datetime | None
    open_batches: int
    """Read from the source and not indexed yet."""
    next_starts: dict[str, datetime | None]
    """Of each kind of run; null: not by itself."""
    intervals: dict[str, int]
    """Seconds from the end of a run to the next one of its kind; 0: never by itself."""
    overdue: str | None = None
    """Why a run that has been due for a while does not begin."""


class CapabilityWire(Wire):
    capability: str
    """`content`, `listing` or `access`."""
    works: bool
    fault: str | None
    """What is missing, and how to mend it."""


class KindWire(Wire):
    """A kind of source, and what is asked of a person who connects one: as JSON schemas."""

    kind: str
    title: str
    help: str
    capabilities: tuple[str, ...]
    settings: dict[str, object]
    credential: dict[str, object] | None
    """Null where none is needed. What is `writeOnly` in it is secret."""


class DoneWire(Wire):
    """What was done about a source, in a sentence."""

    source: str
    told: str


class AuditEntryResponse(Wire):
    """An action on a source: who did what, when, and with what outcome."""

    id: int
    """Grows with time."""
    at: datetime
    actor: str
    """`owner`: the person at the machine itself."""
    action: str
    source: str
    outcome: Literal["done", "refused"]
    detail: dict[str, object]
    """What was changed or asked for; `refused` says why an action was refused. No credential is in it."""


class UnreadableWire(Wire):
    item: str
    reason: str


class ProgressWire(Wire):
    source: str
    stage: str
    item: str | None
    done: int
    total: int | None
    rate: float
    """Documents a second."""


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


class FaultWire(Wire):
    where: str
    message: str


class ProblemWire(Wire):
    """What went wrong, as RFC 9457 has it."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    advice: str | None = None
    """What to do about it."""
    errors: tuple[FaultWire, ...] = ()
    """Of the request, each by where it stands."""


class HealthWire(Wire):
    status: Literal["ok"] = "ok"
    version: str


class PartWire(Wire):
    name: str
    state: Literal["waiting", "ready", "failed"]
    detail: str


class ReadyWire(Wire):
    ready: bool
    parts: tuple[PartWire, ...]


class VariantWire(Wire):
    name: str
    text: str
    weight: float


class QueriesWire(Wire):
    """The event `queries`."""

    variants: tuple[VariantWire, ...]


class BriefWire(Wire):
    """A result, as events tell it."""

    document_id: str
    title: str
    source: str
    link: str
    media_type: str
    heading_path: tuple[str, ...]
    section: int
    span: tuple[int, int]
    updated_at: datetime | None
    content: str
    """The beginning of the best passage."""


class ResultsWire(Wire):
    """The events `first_results`, `results` and `selected`."""

    results: tuple[BriefWire, ...]


class LostWire(Wire):
    """The event `lost`: a step failed, and the answer is made without it."""

    step: str
    reason: str


class TextWire(Wire):
    """The events `reasoning` and `text`; the latter in Markdown, citations as `[[1]](link)`."""

    text: str


class MarkWire(Wire):
    """The event `citation`: comes before the text that cites."""

    number: int
    document_id: str
    title: str
    link: str


class AnsweredWire(Wire):
    """The event `done` of an answer."""

    answer: AnswerWire
    html: str
    """The answer, rendered and cleaned."""
