"""`/api/admin/…`: connect sources of every kind and manage them.

A credential is encrypted as it arrives, and no response contains it.
"""

from datetime import timedelta
from typing import Annotated, Literal, TypeAlias

from fastapi import FastAPI, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import Response

from backend.api import openapi_examples
from backend.api.authorization import Rule, ruled
from backend.api.dependencies import SourcesIs
from backend.api.problem_details import Problem, problem
from backend.schemas.models import (
    AuditEntryResponse,
    CapabilityWire,
    DoneWire,
    FailureWire,
    FaultWire,
    KindWire,
    ProblemWire,
    RunWire,
    SourceWire,
)
from backend.sources import intervals
from backend.sources.service import SOURCE_ACTIONS, SourceService
from connectors.registry import KINDS, NotValid, title_of
from connectors.settings_form import Form

MOST_RUNS = 1_000
MOST_ENTRIES = 1_000
MOST_ID = 2**62
MOST_FAILURES = 1_000
MOST_RETRIED = 1_000

Values: TypeAlias = dict[str, JsonValue]
KindName: TypeAlias = Annotated[str, Field(max_length=100, json_schema_extra={"enum": [*KINDS]})]


class AddBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [openapi_examples.SOURCE]}
    )

    kind: KindName
    name: str | None = Field(
        default=None, max_length=100, description="By default named after what it reads"
    )
    settings: Values = Field(description="As the `settings` of its kind have it")
    credential: Values = Field(
        default_factory=dict, description="As the `credential` of its kind has it", repr=False
    )


class EditBody(BaseModel):
    """A part that is left out stays as it is; a part that is given is replaced as a whole."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [openapi_examples.EDIT]}
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
        extra="forbid", frozen=True, json_schema_extra={"examples": [openapi_examples.SCHEDULE]}
    )

    incremental: Seconds = Field(default=None, description="Interval of content syncs")
    permissions: Seconds = Field(default=None, description="Interval of permission syncs")
    prune: Seconds = Field(default=None, description="Interval of deletion checks")


class RetryBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [openapi_examples.RETRY]}
    )

    documents: (
        Annotated[
            tuple[Annotated[str, Field(max_length=10_000)], ...],
            Field(min_length=1, max_length=MOST_RETRIED),
        ]
        | None
    ) = Field(default=None, description="Ids of failed documents; all by default")


def add_routes(app: FastAPI) -> None:
    one = "/api/admin/sources/{name}"
    action_responses: dict[int | str, openapi_examples.Json] = {
        202: openapi_examples.answer(openapi_examples.DONE),
        409: openapi_examples.problem("The state of the source does not allow it"),
    }
    app.get(
        "/api/admin/kinds",
        responses={200: openapi_examples.answer(openapi_examples.KINDS)},
        summary="List the kinds of source, with the JSON schemas of their settings and credentials",
    )(list_kinds)
    app.get(
        "/api/admin/sources",
        responses={200: openapi_examples.answer(openapi_examples.SOURCES)},
        summary="List the sources with their present state",
    )(list_statuses)
    app.post(
        "/api/admin/sources",
        status_code=201,
        responses={
            201: openapi_examples.answer(openapi_examples.ADDED),
            409: openapi_examples.problem("The name is taken"),
        },
        summary="Connect a source of any kind",
    )(connect_source)
    app.get(
        "/api/admin/audit",
        responses={200: openapi_examples.answer(openapi_examples.AUDIT)},
        summary="List the actions on sources, newest first",
    )(list_audit)
    app.get(
        one,
        responses={200: openapi_examples.answer(openapi_examples.SYNCED)},
        summary="Show a source with its present state",
    )(show_source)
    app.patch(
        one,
        responses={
            200: openapi_examples.answer(openapi_examples.SYNCED),
            409: openapi_examples.problem("The stored credential cannot be opened"),
        },
        summary="Change the settings of a source, or its credential",
    )(edit_source)
    app.put(
        f"{one}/schedule",
        responses={200: openapi_examples.answer(openapi_examples.DONE)},
        summary="Change how often a source is synced",
    )(reschedule_source)
    app.delete(
        one,
        status_code=202,
        responses=action_responses,
        summary="Remove a source, with all documents that it alone brought",
    )(delete_source)
    app.post(
        f"{one}/test",
        responses={200: openapi_examples.answer(openapi_examples.TRIED)},
        summary="Test the connection: content, listing, access",
    )(test_source)
    app.get(
        f"{one}/runs",
        responses={200: openapi_examples.answer(openapi_examples.RUNS)},
        summary="List the last runs of a source, newest first",
    )(list_runs)
    app.get(
        f"{one}/failures",
        responses={200: openapi_examples.answer(openapi_examples.FAILURES)},
        summary="List the documents of a source that could not be read",
    )(list_failures)
    app.post(
        f"{one}/retry",
        status_code=202,
        responses=action_responses,
        summary="Try failed documents again now",
    )(retry_failures)
    app.post(
        f"{one}/{{action}}",
        status_code=202,
        responses=action_responses,
        summary="Pause, resume, cancel, refresh, prune, sync permissions, accept",
    )(run_action)


@ruled(Rule.OWNER)
def list_kinds() -> list[KindWire]:
    return [describe_kind(kind) for kind in KINDS]


@ruled(Rule.OWNER)
def list_statuses(sources: SourcesIs) -> list[SourceWire]:
    return sources.list_statuses()


@ruled(Rule.OWNER)
def connect_source(body: AddBody, sources: SourcesIs, response: Response) -> SourceWire:
    """The first sync starts as soon as possible. Faults of the settings or the credential name the field."""
    added = add(sources, body.kind, body.settings, body.credential, body.name)
    response.headers["Location"] = f"/api/admin/sources/{added.name}"
    return added


@ruled(Rule.OWNER)
def show_source(name: str, sources: SourcesIs) -> SourceWire:
    return sources.status(name)


@ruled(Rule.OWNER)
def edit_source(name: str, body: EditBody, sources: SourcesIs) -> SourceWire:
    """Nothing is stored unless all of it is valid."""
    try:
        return sources.edit(name, body.settings, body.credential)
    except NotValid as error:
        raise Problem(invalid(error)) from None


@ruled(Rule.OWNER)
def reschedule_source(name: str, body: ScheduleBody, sources: SourcesIs) -> DoneWire:
    """The response tells the intervals of all kinds of run."""
    given = body.model_dump(exclude_unset=True)
    every = {
        kind: None if each is None else timedelta(seconds=each) for kind, each in given.items()
    }
    return sources.reschedule(name, every)


@ruled(Rule.OWNER)
def delete_source(name: str, sources: SourcesIs) -> DoneWire:
    return sources.delete(name)


@ruled(Rule.OWNER)
def test_source(name: str, sources: SourcesIs) -> list[CapabilityWire]:
    """Few requests are made to the source. Each fault says what to do about it."""
    return sources.test(name)


@ruled(Rule.OWNER)
def list_runs(
    name: str, sources: SourcesIs, limit: Annotated[int, Query(ge=1, le=MOST_RUNS)] = 20
) -> list[RunWire]:
    return sources.list_runs(name, limit)


@ruled(Rule.OWNER)
def list_failures(
    name: str, sources: SourcesIs, limit: Annotated[int, Query(ge=1, le=MOST_FAILURES)] = 200
) -> list[FailureWire]:
    return sources.list_failures(name, limit)


@ruled(Rule.OWNER)
def retry_failures(name: str, body: RetryBody, sources: SourcesIs) -> DoneWire:
    return sources.retry(name, body.documents)


@ruled(Rule.OWNER)
def list_audit(
    sources: SourcesIs,
    source: Annotated[str | None, Query(max_length=100)] = None,
    actor: Annotated[str | None, Query(max_length=200)] = None,
    before: Annotated[
        int | None, Query(ge=1, le=MOST_ID, description="Only entries with a lower id")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_ENTRIES)] = 100,
) -> list[AuditEntryResponse]:
    """Actions that were refused are listed too. For the next page, pass the id of the last entry as `before`."""
    return sources.list_audit(source=source, actor=actor, before=before, limit=limit)


Action: TypeAlias = Literal[
    "pause", "resume", "cancel", "refresh", "prune", "permissions", "accept"
]


@ruled(Rule.OWNER)
def run_action(name: str, action: Action, sources: SourcesIs) -> DoneWire:
    """The request does not wait for the work, which starts or stops within seconds."""
    return SOURCE_ACTIONS[action](sources, name)


def add(
    sources: SourceService, kind: str, settings: Values, credential: Values, name: str | None
) -> SourceWire:
    """Raises Problem: the settings or the credential are not valid."""
    try:
        return sources.add(kind, settings, credential, name)
    except NotValid as error:
        raise Problem(invalid(error)) from None


def invalid(error: NotValid) -> ProblemWire:
    """Return each fault by its field; nothing of a credential is repeated."""
    faults = tuple(FaultWire(where=".".join(one.path), message=one.message) for one in error.faults)
    details = problem(422, "The settings of the source are not valid.", "See errors.")
    return details.model_copy(update={"errors": faults})


def describe_kind(kind: str) -> KindWire:
    known = KINDS[kind]
    settings, credential = Form.of(known.settings), Form.of(known.credential)
    return KindWire(
        kind=kind,
        title=title_of(kind),
        help=settings.help,
        capabilities=tuple(sorted(known.capabilities)),
        settings=known.settings.model_json_schema(),
        credential=known.credential.model_json_schema() if credential.parts else None,
    )
