"""`/api/admin/…`: connect sources of every kind and manage them.

A credential is encrypted as it arrives, and no response contains it.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Query
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
)
from starlette.responses import Response, StreamingResponse

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.dependencies import SourcesDependency
from backend.schemas.run import RunResponse
from backend.schemas.source import (
    AuditEntryResponse,
    CapabilityResponse,
    DecisionResponse,
    FailureResponse,
    SourceActionResponse,
    SourceKindResponse,
    SourceResponse,
)
from backend.sources import intervals
from backend.sources.audit_export import MEDIA_TYPES, AuditFormat, export_audit
from backend.sources.service import SOURCE_ACTIONS
from backend.store.audit import AuditFilter
from connectors.registry import SOURCE_KINDS, display_name
from connectors.settings_form import Form

router = APIRouter()
_SOURCE = "/api/admin/sources/{name}"
_ACTION: dict[int | str, dict[str, Any]] = {
    409: openapi.describe_problem("The state of the source does not allow it")
}
MOST_RUNS = 1_000
MOST_ENTRIES = 1_000
MOST_ID = 2**31 - 1
_EARLIEST, _LATEST = datetime(1970, 1, 2, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""Beyond lie moments that not every zone and database can tell."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}[T ]", re.ASCII | re.IGNORECASE)
MOST_FAILURES = 1_000
MOST_MISSING = 1_000
MOST_RETRIED = 1_000

Values: TypeAlias = dict[str, JsonValue]
KindName: TypeAlias = Annotated[
    str, Field(max_length=100, json_schema_extra={"enum": [*SOURCE_KINDS]})
]


class AddBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "kind": "folder",
                    "name": "handbook",
                    "settings": {"path": "/srv/handbook", "exclude": ["drafts/**"]},
                }
            ]
        },
    )

    kind: KindName
    name: str | None = Field(
        default=None, max_length=100, description="By default named after what it reads"
    )
    settings: Values = Field(
        description="Settings of the source; GET /api/admin/kinds describes them for each kind"
    )
    credential: Values = Field(
        default_factory=dict,
        description="Credential of the source; GET /api/admin/kinds describes it for each kind",
        repr=False,
    )


class EditBody(BaseModel):
    """A part that is left out stays as it is; a part that is given is replaced as a whole."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {"settings": {"path": "/srv/handbook", "exclude": ["drafts/**", "old/**"]}}
            ]
        },
    )

    settings: Values | None = None
    credential: Values | None = Field(default=None, repr=False)


def _interval(seconds: int | None) -> int | None:
    intervals.check_interval(timedelta(seconds=seconds or 0))
    return seconds


Seconds: TypeAlias = Annotated[
    int | None,
    Field(ge=0, le=intervals.LONGEST.total_seconds()),
    AfterValidator(_interval),
]


class ScheduleBody(BaseModel):
    """Seconds from the end of a run to the next one of its kind: 0 is never, null the default. A kind that is
    left out stays as it is."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"incremental": 3_600, "prune": 86_400, "permissions": None}]
        },
    )

    incremental: Seconds = Field(default=None, description="Interval of content syncs")
    permissions: Seconds = Field(default=None, description="Interval of permission syncs")
    prune: Seconds = Field(default=None, description="Interval of deletion checks")


class OwnerBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"email": "ann@example.com"}]},
    )

    email: str | None = Field(
        max_length=254, description="Of an admin or a source manager; null: all admins"
    )


class RetryBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"documents": ["handbook:scans/lease.pdf"]}]},
    )

    documents: (
        Annotated[
            tuple[Annotated[str, Field(max_length=10_000)], ...],
            Field(min_length=1, max_length=MOST_RETRIED),
        ]
        | None
    ) = Field(default=None, description="Ids of failed documents; all by default")


@router.get(
    "/api/admin/kinds",
    summary="List the kinds of source, with the JSON schemas of their settings and credentials",
)
@requires(Permission.SOURCES)
def list_kinds() -> list[SourceKindResponse]:
    return [describe_kind(kind) for kind in SOURCE_KINDS]


@router.get(
    "/api/admin/sources",
    summary="List the sources with their present state",
)
@requires(Permission.SOURCES)
def list_statuses(sources: SourcesDependency) -> list[SourceResponse]:
    return sources.list_statuses()


@router.post(
    "/api/admin/sources",
    status_code=201,
    responses={
        409: openapi.describe_problem("The name is taken"),
    },
    summary="Connect a source of any kind",
)
@requires(Permission.SOURCES)
def connect_source(body: AddBody, sources: SourcesDependency, response: Response) -> SourceResponse:
    """The first sync starts as soon as possible. Faults of the settings or the credential name the field."""
    added = sources.add(body.kind, body.settings, body.credential, body.name)
    response.headers["Location"] = f"/api/admin/sources/{added.name}"
    return added


@router.get(
    _SOURCE,
    summary="Show a source with its present state",
)
@requires(Permission.SOURCES)
def show_source(name: str, sources: SourcesDependency) -> SourceResponse:
    return sources.status(name)


@router.patch(
    _SOURCE,
    responses={
        503: openapi.describe_problem("Not now, or no key opens the stored credential"),
    },
    summary="Change the settings of a source, or its credential",
)
@requires(Permission.SOURCES)
def edit_source(name: str, body: EditBody, sources: SourcesDependency) -> SourceResponse:
    """Nothing is stored unless all of it is valid."""
    return sources.edit(name, body.settings, body.credential)


@router.put(
    f"{_SOURCE}/schedule",
    summary="Change how often a source is synced",
)
@requires(Permission.SOURCES)
def reschedule_source(
    name: str, body: ScheduleBody, sources: SourcesDependency
) -> SourceActionResponse:
    """The response names the intervals of all kinds of run."""
    given = body.model_dump(exclude_unset=True)
    every = {
        kind: None if each is None else timedelta(seconds=each) for kind, each in given.items()
    }
    return sources.reschedule(name, every)


@router.put(
    f"{_SOURCE}/owner",
    responses={
        409: openapi.describe_problem("The account is disabled, or its role is member"),
    },
    summary="Change who looks after a source",
)
@requires(Permission.ADMIN)
def change_owner(name: str, body: OwnerBody, sources: SourcesDependency) -> SourceResponse:
    """404 where there is no such source, or no account of this address."""
    return sources.set_owner(name, body.email)


@router.delete(
    _SOURCE,
    status_code=202,
    responses=_ACTION,
    summary="Remove a source, with all documents that it alone brought",
)
@requires(Permission.SOURCES)
def delete_source(name: str, sources: SourcesDependency) -> SourceActionResponse:
    return sources.delete(name)


@router.post(
    f"{_SOURCE}/test",
    summary="Test the connection: content, listing, access",
)
@requires(Permission.SOURCES)
def test_source(name: str, sources: SourcesDependency) -> list[CapabilityResponse]:
    """Few requests are made to the source. Each fault says what to do about it."""
    return sources.test(name)


@router.get(
    f"{_SOURCE}/runs",
    summary="List the last runs of a source, newest first",
)
@requires(Permission.SOURCES)
def list_runs(
    name: str, sources: SourcesDependency, limit: Annotated[int, Query(ge=1, le=MOST_RUNS)] = 20
) -> list[RunResponse]:
    return sources.list_runs(name, limit)


@router.get(
    f"{_SOURCE}/failures",
    summary="List the documents of a source that could not be read",
)
@requires(Permission.SOURCES)
def list_failures(
    name: str,
    sources: SourcesDependency,
    limit: Annotated[int, Query(ge=1, le=MOST_FAILURES)] = 200,
) -> list[FailureResponse]:
    return sources.list_failures(name, limit)


@router.post(
    f"{_SOURCE}/retry",
    status_code=202,
    responses=_ACTION,
    summary="Try failed documents again now",
)
@requires(Permission.SOURCES)
def retry_failures(name: str, body: RetryBody, sources: SourcesDependency) -> SourceActionResponse:
    return sources.retry(name, body.documents)


def _refuse_number(given: object) -> object:
    """Refuse a number, which would be read as seconds, or as milliseconds, since 1970."""
    if isinstance(given, str) and not _DAY.match(given):
        raise ValueError("Give a moment such as 2026-03-02T09:30:00Z.")
    return given


Moment: TypeAlias = Annotated[
    AwareDatetime, BeforeValidator(_refuse_number), Field(ge=_EARLIEST, le=_LATEST)
]


class AuditQuery(BaseModel):
    """Entries that are equal in all that is given."""

    source: str | None = Field(default=None, max_length=100, description="The name of a source")
    subject: str | None = Field(
        default=None,
        max_length=400,
        description="What was acted on, as the entries name it: a source, `user:EMAIL`, `token:NAME`",
    )
    actor: str | None = Field(default=None, max_length=400)
    action: str | None = Field(default=None, max_length=100)
    since: Moment | None = None
    until: Moment | None = Field(default=None, description="Only entries before this moment")

    def to_filter(self) -> AuditFilter:
        return AuditFilter(
            subject=self.source if self.subject is None else self.subject,
            actor=self.actor,
            action=self.action,
            since=self.since,
            until=self.until,
        )


class AuditPageQuery(AuditQuery):
    before: int | None = Field(
        default=None, ge=1, le=MOST_ID, description="Only entries with a lower id"
    )
    limit: int = Field(default=100, ge=1, le=MOST_ENTRIES)


class AuditExportQuery(AuditQuery):
    format: AuditFormat = "csv"


@router.get(
    "/api/admin/audit",
    summary="List the actions on sources, people, groups and tokens, newest first",
)
@requires(Permission.ADMIN)
def list_audit(
    sources: SourcesDependency, query: Annotated[AuditPageQuery, Query()]
) -> list[AuditEntryResponse]:
    """Actions that were refused are listed too. For the next page, pass the id of the last entry as `before`."""
    return sources.list_audit(query.to_filter(), before=query.before, limit=query.limit)


@router.get(
    "/api/admin/audit/export",
    response_class=StreamingResponse,
    responses={200: openapi.AUDIT_FILE},
    summary="Get all these actions as a file",
)
@requires(Permission.ADMIN)
def export_entries(
    sources: SourcesDependency, query: Annotated[AuditExportQuery, Query()]
) -> StreamingResponse:
    """Newest first: CSV with a header, or one JSON object a line. A cell that a spreadsheet would take for a formula
    begins with an apostrophe."""
    lines = export_audit(sources.iterate_audit(query.to_filter()), query.format)
    headers = {"Content-Disposition": f'attachment; filename="audit.{query.format}"'}
    return StreamingResponse(lines, media_type=MEDIA_TYPES[query.format], headers=headers)


@router.get(
    f"{_SOURCE}/decision",
    summary="Show which documents a deletion would remove, and what probably happened",
)
@requires(Permission.SOURCES)
def show_decision(
    name: str,
    sources: SourcesDependency,
    after: Annotated[
        str, Query(max_length=10_000, description="The id of the last document of the page before")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_MISSING)] = 100,
) -> DecisionResponse:
    """404 where nothing is to be decided. To decide: the actions `accept` and `keep`."""
    return sources.decision(name, after, limit)


@router.post(
    f"{_SOURCE}/accept",
    status_code=202,
    responses=_ACTION,
    summary="Accept the deletion of documents that are missing from a source",
)
@requires(Permission.SOURCES)
def accept_deletions(
    name: str,
    sources: SourcesDependency,
    missing: Annotated[
        int | None,
        Query(
            ge=0,
            description="How many missing documents you were shown; 409 if the number has changed since",
        ),
    ] = None,
) -> SourceActionResponse:
    """A run that starts within seconds lists the source again, and deletes no more than that."""
    return sources.accept(name, missing)


Action: TypeAlias = Literal["pause", "resume", "cancel", "refresh", "prune", "permissions", "keep"]


@router.post(
    f"{_SOURCE}/{{action}}",
    status_code=202,
    responses=_ACTION,
    summary="Pause, resume, cancel, refresh, prune, sync permissions, keep missing documents",
)
@requires(Permission.SOURCES)
def run_action(name: str, action: Action, sources: SourcesDependency) -> SourceActionResponse:
    """The request does not wait for the work, which starts or stops within seconds."""
    return SOURCE_ACTIONS[action](sources, name)


def describe_kind(kind: str) -> SourceKindResponse:
    known = SOURCE_KINDS[kind]
    settings, credential = Form.from_model(known.settings), Form.from_model(known.credential)
    return SourceKindResponse(
        kind=kind,
        title=display_name(kind),
        help=settings.help,
        capabilities=tuple(sorted(known.capabilities)),
        settings=known.settings.model_json_schema(),
        credential=known.credential.model_json_schema() if credential.parts else None,
    )
