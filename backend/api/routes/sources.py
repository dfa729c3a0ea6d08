"""`/api/sources` and `/api/failures`: connect folders, sync sources, list failures."""

from itertools import islice
from typing import Annotated, Literal

from fastapi import FastAPI, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from backend.api import openapi_examples
from backend.api.authorization import Rule, ruled
from backend.api.dependencies import ContainerIs, PartsIs, SourcesIs
from backend.api.problem_details import Problem, problem
from backend.api.routes import admin
from backend.api.server_sent_events import EventStream
from backend.schemas import conversion
from backend.schemas.models import FailureWire, SourceWire
from backend.store import failures, runs
from backend.store.database import Database
from backend.store.sources import check_not_paused
from backend.sync.process_identity import is_going_on
from indexing.ingestion.pipeline import EmptyListing

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
    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [openapi_examples.SOURCE]}
    )

    kind: Literal["folder"]
    name: str | None = Field(
        default=None, max_length=100, description="By default that of the folder"
    )
    settings: FolderBody


def add_routes(app: FastAPI) -> None:
    app.get(
        "/api/sources",
        responses={200: openapi_examples.answer(openapi_examples.SOURCES)},
        summary="List the sources with their state",
    )(list_sources)
    app.post(
        "/api/sources",
        status_code=201,
        responses={
            201: openapi_examples.answer(openapi_examples.ADDED),
            409: openapi_examples.problem("The name is taken"),
        },
        summary="Connect a folder",
    )(add_source)
    app.post(
        "/api/sources/{name}/sync",
        status_code=200,
        response_class=EventStream,
        responses={
            200: openapi_examples.stream(openapi_examples.SYNC_EVENTS),
            409: openapi_examples.problem("It is paused, or another process syncs it"),
        },
        summary="Sync a source",
    )(sync_source)
    app.get(
        "/api/failures",
        responses={200: openapi_examples.answer(openapi_examples.FAILURES)},
        summary="List the documents that could not be read, and why",
    )(list_failures)


@ruled(Rule.OWNER)
def list_sources(sources: SourcesIs) -> list[SourceWire]:
    return sources.list_statuses()


@ruled(Rule.OWNER)
def add_source(body: SourceBody, sources: SourcesIs, response: Response) -> SourceWire:
    """Sources of other kinds are connected by /api/admin/sources."""
    settings = body.settings.model_dump(mode="json", exclude_defaults=True)
    added = admin.add(sources, body.kind, settings, {}, body.name)
    response.headers["Location"] = "/api/sources"
    return added


@ruled(Rule.OWNER)
def sync_source(
    name: str,
    sources: SourcesIs,
    parts: PartsIs,
    accept_empty: Annotated[  # noqa: FBT002 (a query parameter)
        bool, Query(description="Delete all documents of a source that lists none")
    ] = False,
) -> EventStream:
    """Server-sent events: `progress`, and at the end `done` with the report, or with its `error`.

    A run of this server that is syncing the source already is followed. A run continues when the
    connection is closed; when the server stops, the next sync continues from the last checkpoint.
    """
    source = sources.get(name)
    if not parts.syncs.running(name):
        check_not_paused(source)
        _check_not_running(sources.database, name)
    when_empty = EmptyListing.ACCEPT if accept_empty else EmptyListing.REFUSE
    run = parts.syncs.begin(source, when_empty)
    return EventStream(run.follow, parts.streams)


@ruled(Rule.OWNER)
def list_failures(
    container: ContainerIs,
    source: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_FAILURES)] = 200,
) -> list[FailureWire]:
    found = failures.list_failures(container.database, source)
    return [conversion.failure(one) for one in islice(found, limit)]


def _check_not_running(database: Database, name: str) -> None:
    run = runs.latest(database, name).get(name)
    if run and is_going_on(run):
        raise Problem(problem(409, f"{run.description}.", "Wait until it is done, or stop it."))
