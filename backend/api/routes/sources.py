"""`/api/sources` and `/api/failures`: connect folders, sync sources, list failures."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from backend.api import openapi
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import AppStateDependency, SourcesDependency
from backend.api.followed_source import SourceFollower
from backend.api.routes import admin
from backend.api.server_sent_events import EventStream
from backend.schemas.source import FailureResponse, SourceResponse
from indexing.ingestion.pipeline import EmptyListing

router = APIRouter()
MOST_FAILURES = 1_000
Globs = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=1_000)], ...], Field(max_length=100)
]


class FolderBody(BaseModel):
    """Which files of which folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(min_length=1, max_length=4_096, description="A folder of this machine")
    include: Globs = Field(default=(), description="Only files that match one of these")
    exclude: Globs = Field(default=(), description="No file that matches one of these")


class SourceBody(BaseModel):
    model_config = admin.AddBody.model_config

    kind: Literal["folder"]
    name: str | None = Field(
        default=None, max_length=100, description="By default that of the folder"
    )
    settings: FolderBody


@router.get(
    "/api/sources",
    summary="List the sources with their state",
)
@requires(Permission.SOURCES)
def list_sources(sources: SourcesDependency) -> list[SourceResponse]:
    return sources.list_statuses()


@router.post(
    "/api/sources",
    status_code=201,
    responses={
        409: openapi.describe_problem("The name is taken"),
    },
    summary="Connect a folder",
)
@requires(Permission.SOURCES)
def add_source(body: SourceBody, sources: SourcesDependency, response: Response) -> SourceResponse:
    """Sources of other kinds are connected by /api/admin/sources."""
    settings = body.settings.model_dump(mode="json", exclude_defaults=True)
    folder = admin.AddBody(kind=body.kind, name=body.name, settings=settings)
    return admin.connect_source(folder, sources, response)


@router.post(
    "/api/sources/{name}/sync",
    status_code=200,
    response_class=EventStream,
    responses={
        200: openapi.describe_stream(openapi.SYNC_EVENTS),
        409: openapi.describe_problem("It is paused, or another process syncs it"),
    },
    summary="Sync a source",
)
@requires(Permission.SOURCES)
def sync_source(
    name: str,
    request: Request,
    sources: SourcesDependency,
    state: AppStateDependency,
    asker: AskerDependency,
    accept_empty: Annotated[  # noqa: FBT002 (a query parameter)
        bool, Query(description="Delete all documents of a source that lists none")
    ] = False,
) -> EventStream:
    """Server-sent events: `progress`, and at the end `done` with the report, or with its `error`.

    A run of this server that is syncing the source already is followed. A run continues when the
    connection is closed; when the server stops, the next sync continues from the last checkpoint.
    Where the session or token ends meanwhile, or the source is given to somebody else, the last event is an `error`
    with the status 401, 403 or 404; the run continues then, too.
    """
    when_empty = EmptyListing.ACCEPT if accept_empty else EmptyListing.REFUSE
    source = sources.get(name)
    run = sources.follow_or_begin(name, when_empty, state.sync_runs)
    follower = SourceFollower(request, state.authenticator, sources.database, source)
    return EventStream(lambda: follower.follow(run), state.pools.sync_streams, asker.turn_key)


@router.get(
    "/api/failures",
    summary="List the documents that could not be read, and why",
)
@requires(Permission.SOURCES)
def list_all_failures(
    sources: SourcesDependency,
    source: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_FAILURES)] = 200,
) -> list[FailureResponse]:
    return sources.list_all_failures(source, limit)
