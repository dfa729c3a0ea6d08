"""What the description of the API shows of each route: an example of what is sent and answered."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from backend.api import problem_details
from backend.api.server_sent_events import STOPPING, Event, EventStream
from backend.schemas import models as wire

Json: TypeAlias = dict[str, Any]

EVENTS = EventStream.media_type

_MOMENT = datetime(2025, 11, 3, 9, 30, tzinfo=UTC)
_LEAVE = "handbook:people/parental-leave.md"
_LINK = "file:///srv/handbook/people/parental-leave.md"
_SENTENCE = "Parents have 26 weeks of paid leave."

SEARCH: Json = {
    "query": "parental leave",
    "filters": {"sources": ["handbook"], "since": "2025-01-01"},
    "limit": 5,
    "explain": True,
}
ASK: Json = {
    "question": "And for adoptions?",
    "history": [
        {"role": "user", "text": "How long is parental leave?"},
        {"role": "assistant", "text": f"{_SENTENCE} [[1]]({_LINK})"},
    ],
}
SOURCE: Json = {
    "kind": "folder",
    "name": "handbook",
    "settings": {"path": "/srv/handbook", "exclude": ["drafts/**"]},
}

EDIT: Json = {"settings": {"path": "/srv/handbook", "exclude": ["drafts/**", "old/**"]}}
SCHEDULE: Json = {"incremental": 3_600, "prune": 86_400, "permissions": None}
RETRY: Json = {"documents": ["handbook:scans/lease.pdf"]}

_BRIEF = wire.BriefWire(
    document_id=_LEAVE,
    title="Parental leave",
    source="handbook",
    link=_LINK,
    media_type="text/markdown",
    heading_path=("Parental leave", "How long"),
    section=1,
    span=(0, 36),
    updated_at=_MOMENT,
    content=_SENTENCE,
)
FOUND = wire.FoundWire(
    query="parental leave",
    results=(
        wire.ResultWire(
            number=1,
            score=0.078431,
            why=(wire.WhyWire(variant="original", leg="keyword", rank=1),),
            **_BRIEF.model_dump(),
        ),
    ),
    seconds=0.0123,
    facets=wire.FacetsWire(
        sources={"handbook": 45},
        media_types={"text/markdown": 21},
        people=(wire.PersonWire(key="ines@example.com", name="Ines Almqvist", documents=4),),
        months={"2025-11": 3},
    ),
)
_CITATION = wire.CitationWire(
    number=1,
    document_id=_LEAVE,
    title="Parental leave",
    link=_LINK,
    quote=_SENTENCE,
    section=1,
    span=(0, 36),
    score=0.91,
    verdict="supported",
)
_ANSWER = wire.AnswerWire(
    question="How long is parental leave?",
    answer=f"{_SENTENCE} [[1]]({_LINK})",
    model=None,
    citations=(_CITATION,),
    seconds=0.41,
)
DOCUMENTS = wire.DocumentsWire(
    documents=(
        wire.DocumentWire(
            id=_LEAVE,
            title="Parental leave",
            source="handbook",
            link=_LINK,
            readers=("public",),
            chunks=4,
            updated_at=_MOMENT,
        ),
    ),
    next=None,
)
SHOWN = wire.DocumentShownWire(
    id=_LEAVE,
    title="Parental leave",
    source="handbook",
    link=_LINK,
    readers=("public",),
    updated_at=_MOMENT,
    sections=(
        wire.SectionWire(
            kind="text",
            text=_SENTENCE,
            link=None,
            place=wire.PlaceWire(
                page=None,
                heading_path=("Parental leave", "How long"),
                sheet=None,
                rows=None,
                span=(120, 156),
            ),
        ),
    ),
    media_type="text/markdown",
    has_original=True,
    synced_at=_MOMENT,
    chunks=(wire.ChunkWire(position=0, section=0, span=(0, 36)),),
)
_SYNCED = wire.SyncWire(
    source="handbook",
    documents=2,
    chunks=9,
    embedded=9,
    unchanged=0,
    amended=0,
    deleted=1,
    restored=0,
    unreadable=(wire.UnreadableWire(item="scans/lease.pdf", reason="it holds no text"),),
    unreadable_count=1,
    error=None,
    seconds={"read": 0.02, "chunk": 0.01, "embed": 0.3, "write": 0.05},
)
_RUN = wire.RunWire(
    id=7,
    kind="incremental",
    state="done",
    stage="listing",
    item="handbook:support/warranty.docx",
    counts={"documents": 2, "deleted": 1},
    error=None,
    waiting_for=None,
    next_try=None,
    decision=None,
    started_at=_MOMENT,
    finished_at=_MOMENT,
)
ADDED = wire.SourceWire(
    name="handbook",
    kind="folder",
    settings={"path": "/srv/handbook"},
    has_credential=False,
    documents=0,
    failures=0,
    state="never synced",
    last_run=None,
    run=None,
    rate=None,
    decision=None,
    paused_at=None,
    open_batches=0,
    next_starts={"incremental": _MOMENT, "prune": None},
    intervals={"incremental": 900, "permissions": 900, "prune": 21_600},
)
SYNCED = ADDED.model_copy(
    update={"documents": 45, "failures": 1, "state": "done", "last_run": _MOMENT, "run": _RUN}
)
SOURCES = [SYNCED]
FAILURES = [
    wire.FailureWire(
        source="handbook",
        document_id="handbook:scans/lease.pdf",
        item="scans/lease.pdf",
        link="file:///srv/handbook/scans/lease.pdf",
        reason="it holds no text",
        tries=2,
        last_at=_MOMENT,
        next_try=_MOMENT,
    )
]
RUNS = [_RUN]
AUDIT = [
    wire.AuditEntryResponse(
        id=12,
        at=_RUN.started_at,
        actor="owner",
        action="reschedule",
        source="handbook",
        outcome="done",
        detail={"prune": 86_400},
    )
]
KINDS = [
    wire.KindWire(
        kind="folder",
        title="Folder",
        help="Which files of which folder.",
        capabilities=("access", "content", "listing"),
        settings={
            "type": "object",
            "required": ["path"],
            "properties": {"path": {"type": "string", "format": "path"}},
        },
        credential=None,
    )
]
TRIED = [
    wire.CapabilityWire(capability="content", works=True, fault=None),
    wire.CapabilityWire(capability="listing", works=True, fault=None),
    wire.CapabilityWire(
        capability="access",
        works=False,
        fault="The token may not read who the members are: give it the scope members:read.",
    ),
]
DONE = wire.DoneWire(source="handbook", told="handbook is synced again.")
HEALTHY = wire.HealthWire(version="0.1.0")
READY = wire.ReadyWire(
    ready=True, parts=(wire.PartWire(name="database", state="ready", detail=""),)
)
_UNREADY = wire.ReadyWire(
    ready=False, parts=(wire.PartWire(name="embedding model", state="waiting", detail=""),)
)

_RESULTS = wire.ResultsWire(results=(_BRIEF,))
ANSWER_EVENTS = (
    Event(
        "queries",
        wire.QueriesWire(
            variants=(wire.VariantWire(name="original", text="parental leave", weight=2.0),)
        ),
    ),
    Event("first_results", _RESULTS),
    Event("lost", wire.LostWire(step="selection", reason="the language model did not answer")),
    Event("results", _RESULTS),
    Event("selected", _RESULTS),
    Event("reasoning", wire.TextWire(text="The page on leave says how long it is.")),
    Event("citation", wire.MarkWire(**_CITATION.model_dump(include={*wire.MarkWire.model_fields}))),
    Event("text", wire.TextWire(text=f"{_SENTENCE} [[1]]({_LINK})")),
    Event("done", wire.AnsweredWire(answer=_ANSWER, html=f"<p>{_SENTENCE}</p>")),
    STOPPING,
)
SYNC_EVENTS = (
    Event(
        "progress",
        wire.ProgressWire(
            source="handbook", stage="indexing", item="Warranty", done=12, total=None, rate=8.4
        ),
    ),
    Event("done", _SYNCED),
    STOPPING,
)

_PROBLEM = problem_details.problem(404, "There is no such document that you may read.")


def answer(example: BaseModel | list[Any]) -> Json:
    shown = example if isinstance(example, list) else [example]
    values = [one.model_dump(mode="json") for one in shown]
    value = values if isinstance(example, list) else values[0]
    return {"content": {"application/json": {"example": value}}}


def stream(events: tuple[Event, ...]) -> Json:
    """An example of each event, and what each is made of: in OpenAPI 3.2's words, which 3.1 allows."""
    told = {
        event.name: {"value": event.encoded(number).decode()}
        for number, event in enumerate(events, start=1)
    }
    content = {"itemSchema": {"oneOf": list(map(_shape, events))}, "examples": told}
    return {"description": "Server-sent events", "content": {EVENTS: content}}


def _shape(event: Event) -> Json:
    data = {"$ref": _reference(event.data)}
    return {
        "type": "object",
        "required": ["id", "event", "data"],
        "properties": {
            "id": {"type": "string"},
            "event": {"const": event.name},
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": data,
            },
        },
    }


def problem(description: str, example: wire.ProblemWire = _PROBLEM) -> Json:
    shape = {"$ref": _reference(example)}
    value = example.model_dump(mode="json", exclude_none=True)
    content = {problem_details.MEDIA_TYPE: {"schema": shape, "example": value}}
    return {"description": description, "content": content}


def file() -> Json:
    """Of any media type."""
    content = {"*/*": {"schema": {"type": "string", "format": "binary"}, "example": "%PDF-1.7 …"}}
    return {"description": "The file as it was read", "content": content}


def unready() -> Json:
    shape = {"$ref": _reference(_UNREADY)}
    content = {"application/json": {"schema": shape, "example": _UNREADY.model_dump(mode="json")}}
    return {"description": "Some part is not ready", "content": content}


def complete(description: Json) -> None:
    """Put in what the framework does not know of; and take out that a stream were one text."""
    description["components"]["schemas"] |= _schemas()
    for methods in description["paths"].values():
        for operation in methods.values():
            for told in operation["responses"].values():
                told["content"].get(EVENTS, {}).pop("schema", None)


def _schemas() -> Mapping[str, Any]:
    """The shapes that no route answers with by itself: problems, and the data of events."""
    shown: list[BaseModel] = [event.data for event in (*ANSWER_EVENTS, *SYNC_EVENTS)]
    models = {type(one).__name__: type(one) for one in (*shown, _PROBLEM)}
    _, described = models_json_schema(
        [(model, "serialization") for model in models.values()],
        ref_template="#/components/schemas/{model}",
    )
    found: Mapping[str, Any] = described["$defs"]
    return found


def _reference(data: BaseModel) -> str:
    return f"#/components/schemas/{type(data).__name__}"


PROBLEMS: dict[int | str, Json] = {
    400: problem("The request cannot be read"),
    403: problem("It comes from elsewhere, or you may not do this"),
    404: problem("There is nothing of the kind that you may read"),
    405: problem("Not with this method"),
    413: problem("The request is too long"),
    421: problem("It is addressed to a name that is not this machine's"),
    422: problem("The request is not valid"),
    500: problem("Something within Quarry has to be mended"),
    503: problem("Not now; try again"),
    504: problem("The time for this was up"),
}
"""Of every route."""
