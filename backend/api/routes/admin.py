"""`/api/admin/…`: connect sources of every kind, look after them, decide about their runs.

A credential goes in and never comes out again: it is sealed as it comes, and no answer holds it.
"""

from datetime import timedelta
from itertools import islice
from typing import Annotated, Literal, TypeAlias

from fastapi import FastAPI, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import Response

from backend.api import openapi_examples
from backend.api.authorization import Rule, ruled
from backend.api.dependencies import ContainerIs
from backend.api.problem_details import Problem, problem
from backend.container import Container
from backend.schemas import conversion
from backend.schemas.models import (
    CapabilityWire,
    DoneWire,
    FailureWire,
    FaultWire,
    KindWire,
    ProblemWire,
    RunWire,
    SourceWire,
)
from backend.sources import actions, connections, intervals, listing
from backend.store import failures, runs
from backend.store import sources as stored
from backend.store.sources import Source
from connectors.errors import ActionRequiredError
from connectors.registry import KINDS, NotValid, title_of
from connectors.settings_form import Form

MOST_RUNS = 1_000
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
        default=None, max_length=100, description="By default after what is read"
    )
    settings: Values = Field(description="As the `settings` of its kind have it")
    credential: Values = Field(
        default_factory=dict, description="As the `credential` of its kind has it", repr=False
    )


class EditBody(BaseModel):
    """What is left out stays as it is; what is given is replaced as a whole."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [openapi_examples.EDIT]}
    )

    settings: Values | None = None
    credential: Values | None = Field(default=None, repr=False)


def _interval(seconds: int | None) -> int | None:
    intervals.check(timedelta(seconds=seconds or 0))
    return seconds


Seconds: TypeAlias = Annotated[
    int | None,
    Field(ge=0, le=intervals.LONGEST.total_seconds()),
    AfterValidator(_interval),
]


class ScheduleBody(BaseModel):
    """Seconds from the end of a run to the next one of its kind: 0 is never by itself, null as usual. What is
    left out stays as it is."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [openapi_examples.SCHEDULE]}
    )

    incremental: Seconds = Field(default=None, description="Reading what changed")
    permissions: Seconds = Field(default=None, description="Asking who may read")
    prune: Seconds = Field(default=None, description="Looking for what is gone")


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
    ) = Field(default=None, description="Their ids; all that failed, without")


def add_routes(app: FastAPI) -> None:
    one = "/api/admin/sources/{name}"
    steered: dict[int | str, openapi_examples.Json] = {
        202: openapi_examples.answer(openapi_examples.DONE),
        409: openapi_examples.problem("It cannot be done as the source stands"),
    }
    app.get(
        "/api/admin/kinds",
        responses={200: openapi_examples.answer(openapi_examples.KINDS)},
        summary="List the kinds of source, and what is asked to connect one",
    )(list_kinds)
    app.get(
        "/api/admin/sources",
        responses={200: openapi_examples.answer(openapi_examples.SOURCES)},
        summary="List the sources, each as it stands at this moment",
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
        one,
        responses={200: openapi_examples.answer(openapi_examples.SYNCED)},
        summary="Show a source, as it stands at this moment",
    )(show_source)
    app.patch(
        one,
        responses={
            200: openapi_examples.answer(openapi_examples.SYNCED),
            409: openapi_examples.problem("What is stored of it cannot be used"),
        },
        summary="Change the settings of a source, or its credential",
    )(edit_source)
    app.put(
        f"{one}/schedule",
        responses={200: openapi_examples.answer(openapi_examples.DONE)},
        summary="Change how often a source is read",
    )(reschedule_source)
    app.delete(
        one,
        status_code=202,
        responses=steered,
        summary=actions.WORDS["delete"].help,
    )(delete_source)
    app.post(
        f"{one}/test",
        responses={200: openapi_examples.answer(openapi_examples.TRIED)},
        summary="Try what can be had of a source: content, listing, access",
    )(try_source)
    app.get(
        f"{one}/runs",
        responses={200: openapi_examples.answer(openapi_examples.RUNS)},
        summary="List the last runs of a source, newest first",
    )(list_runs)
    app.get(
        f"{one}/failures",
        responses={200: openapi_examples.answer(openapi_examples.FAILURES)},
        summary="List what of a source could not be read, and when it is tried again",
    )(list_failures_of)
    app.post(
        f"{one}/retry",
        status_code=202,
        responses=steered,
        summary="Read again now what could not be read",
    )(retry_failures)
    app.post(
        f"{one}/{{word}}",
        status_code=202,
        responses=steered,
        summary="Pause, resume, cancel, refresh, prune, ask for permissions, accept",
    )(steer_source)


@ruled(Rule.OWNER)
def list_kinds() -> list[KindWire]:
    return [kind_told(kind) for kind in KINDS]


@ruled(Rule.OWNER)
def list_statuses(container: ContainerIs) -> list[SourceWire]:
    return listing.sources(container.database)


@ruled(Rule.OWNER)
def connect_source(body: AddBody, container: ContainerIs, response: Response) -> SourceWire:
    """It is read as soon as can be. What is wrong with the settings or the credential is told by where it
    stands."""
    added = add(container, body.kind, body.settings, body.credential, body.name)
    response.headers["Location"] = f"/api/admin/sources/{added.name}"
    return added


@ruled(Rule.OWNER)
def show_source(name: str, container: ContainerIs) -> SourceWire:
    return listing.source(container.database, find(container, name).name)


@ruled(Rule.OWNER)
def edit_source(name: str, body: EditBody, container: ContainerIs) -> SourceWire:
    """What is not valid is not stored."""
    source = find(container, name)
    try:
        return connections.edit(container, source, body.settings, body.credential)
    except NotValid as error:
        raise Problem(invalid(error)) from None
    except ActionRequiredError as error:  # no key opens the credential that would stay
        raise Problem(problem(409, str(error))) from error


@ruled(Rule.OWNER)
def reschedule_source(name: str, body: ScheduleBody, container: ContainerIs) -> DoneWire:
    """What is told is how often each kind of run begins from now on."""
    source, given = find(container, name), body.model_dump(exclude_unset=True)
    every = {
        kind: None if each is None else timedelta(seconds=each) for kind, each in given.items()
    }
    return actions.reschedule(container.database, source.name, every)


@ruled(Rule.OWNER)
def delete_source(name: str, container: ContainerIs) -> DoneWire:
    return _steered(container, "delete", find(container, name))


@ruled(Rule.OWNER)
def try_source(name: str, container: ContainerIs) -> list[CapabilityWire]:
    """Little is asked of the source. What does not work is told with what to do about it."""
    return connections.test(container, find(container, name))


@ruled(Rule.OWNER)
def list_runs(
    name: str, container: ContainerIs, limit: Annotated[int, Query(ge=1, le=MOST_RUNS)] = 20
) -> list[RunWire]:
    history = runs.history(container.database, find(container, name).name, limit)
    return [conversion.ran(one) for one in history]


@ruled(Rule.OWNER)
def list_failures_of(
    name: str, container: ContainerIs, limit: Annotated[int, Query(ge=1, le=MOST_FAILURES)] = 200
) -> list[FailureWire]:
    of = find(container, name).name
    found = (one for one in failures.listing(container.database) if one.source == of)
    return [conversion.failure(one) for one in islice(found, limit)]


@ruled(Rule.OWNER)
def retry_failures(name: str, body: RetryBody, container: ContainerIs) -> DoneWire:
    source = find(container, name)
    try:
        return actions.retry(container.database, source.name, body.documents)
    except ActionRequiredError as error:
        raise Problem(problem(409, str(error))) from error


Word: TypeAlias = Literal["pause", "resume", "cancel", "refresh", "prune", "permissions", "accept"]


@ruled(Rule.OWNER)
def steer_source(name: str, word: Word, container: ContainerIs) -> DoneWire:
    """Nothing waits for the work: it is begun, or ended, within seconds."""
    return _steered(container, word, find(container, name))


def add(
    container: Container, kind: str, settings: Values, credential: Values, name: str | None
) -> SourceWire:
    """
    Raises:
        Problem: what was entered is not valid, or the name is taken.
    """
    try:
        return connections.add(container, kind, settings, credential, name)
    except NotValid as error:
        raise Problem(invalid(error)) from None
    except ActionRequiredError as error:
        status = 409 if kind in KINDS else 422
        raise Problem(problem(status, str(error))) from error


def find(container: Container, name: str) -> Source:
    """Raises Problem: there is none of this name."""
    for one in stored.listing(container.database):
        if one.name == name:
            return one
    raise Problem(problem(404, "There is no source of this name."))


def invalid(error: NotValid) -> ProblemWire:
    """Each fault by where it stands; nothing of a credential is told back."""
    faults = tuple(FaultWire(where=".".join(one.path), message=one.message) for one in error.faults)
    told = problem(422, "What was entered for the source is not valid.", "See errors.")
    return told.model_copy(update={"errors": faults})


def kind_told(kind: str) -> KindWire:
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


def _steered(container: Container, word: str, source: Source) -> DoneWire:
    try:
        return actions.steer(container.database, word, source.name)
    except ActionRequiredError as error:
        raise Problem(problem(409, str(error))) from error
