"""`/api/research`: questions that take many searches, planned with you, and reported with their sources."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from backend.api import openapi
from backend.api import research_responses as responses
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.conversation_dependencies import FirstEventDependency
from backend.api.dependencies import (
    AppStateDependency,
)
from backend.api.followed_answer import open_stream
from backend.api.list_positions import LONGEST_POSITION
from backend.api.research_dependencies import (
    ResearchDependency,
    ResearchFollowerDependency,
    ResearchId,
)
from backend.api.research_desk import ResearchBody, ResearchDeskDependency
from backend.api.server_sent_events import EventStream
from backend.research.record.plan import LONGEST_QUESTION, MAX_TASKS
from backend.research.runs.report_docx import DOCX, write_docx
from backend.research.runs.service import LONGEST_ANSWER
from backend.schemas.research import OpenedResearchResponse, ResearchRunsResponse

router = APIRouter()
MOST_RUNS = 200
_ONE = "/api/research/{research_id}"
_MARKDOWN = "text/markdown"
_CONFLICT: dict[int | str, dict[str, Any]] = {
    409: openapi.describe_problem(
        "Not as the run is now; or the web is switched off, or no language model is set"
    )
}
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: openapi.describe_stream(openapi.RESEARCH_EVENTS),
    204: {"description": "Nothing follows any more: the run has ended"},
}
_REPORT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The report, with its sources under their numbers",
        "content": {
            _MARKDOWN: {
                "schema": {"type": "string"},
                "example": "# Parental leave\n\nParents have 26 weeks of paid leave [^1].\n\n"
                "[^1]: [Leave](https://wiki.example.com/leave), 2026-01-12: “Parental leave is 26 weeks, paid in full.”\n",
            },
            DOCX: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


class ClarificationBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"answer": "Germany and Ireland."}]},
    )

    answer: Annotated[str, Field(max_length=LONGEST_ANSWER)] | None = Field(
        description="What you say to the questions back; null passes over them"
    )


class PlanBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"tasks": ["How long is parental leave in Ireland?"]}]},
    )

    tasks: tuple[Annotated[str, Field(max_length=LONGEST_QUESTION)], ...] = Field(
        min_length=1,
        max_length=MAX_TASKS,
        description="The sub-questions, in place of those before",
    )


@router.post("/api/research", status_code=202, responses=_CONFLICT, summary="Start research")
@requires(Permission.ASK)
def start_research(body: ResearchBody, desk: ResearchDeskDependency) -> OpenedResearchResponse:
    """It goes on whether anybody follows it or not, also when the server is restarted; its events are at .../events."""
    return responses.make_opened(desk.begin(body))


@router.get("/api/research", summary="List your research, or that of a project")
@requires(Permission.ASK)
def list_research(
    research: ResearchDependency,
    project_id: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_RUNS)] = 50,
    before: Annotated[
        str | None,
        Query(max_length=LONGEST_POSITION, description="What `next` of the page before says"),
    ] = None,
) -> ResearchRunsResponse:
    """The last changed run first."""
    page = research.list_page(project_id, responses.find_position(before), limit)
    return responses.make_page(page, research)


@router.get(_ONE, summary="Return research: its plan, what was found so far, and the report")
@requires(Permission.ASK)
def open_research(research_id: ResearchId, research: ResearchDependency) -> OpenedResearchResponse:
    """What rests on sources that you may not read now is left out, and said to be."""
    return responses.make_opened(research.open(research_id))


@router.post(
    f"{_ONE}/clarification",
    responses=_CONFLICT,
    summary="Answer questions back, or pass over them",
)
@requires(Permission.ASK)
def clarify_research(
    research_id: ResearchId, body: ClarificationBody, research: ResearchDependency
) -> OpenedResearchResponse:
    return responses.make_opened(research.clarify(research_id, body.answer))


@router.put(f"{_ONE}/plan", responses=_CONFLICT, summary="Change the plan before it starts")
@requires(Permission.ASK)
def change_research_plan(
    research_id: ResearchId, body: PlanBody, research: ResearchDependency
) -> OpenedResearchResponse:
    return responses.make_opened(research.change_plan(research_id, body.tasks))


@router.post(f"{_ONE}/start", status_code=202, responses=_CONFLICT, summary="Start the plan")
@requires(Permission.ASK)
def start_research_plan(
    research_id: ResearchId, research: ResearchDependency
) -> OpenedResearchResponse:
    return responses.make_opened(research.start(research_id))


@router.post(
    f"{_ONE}/stop", status_code=202, summary="Stop research, with a report of what there is"
)
@requires(Permission.ASK)
def stop_research(research_id: ResearchId, research: ResearchDependency) -> OpenedResearchResponse:
    """Research that has ended stays as it is."""
    return responses.make_opened(research.stop(research_id))


@router.delete(_ONE, status_code=204, summary="Delete research with all that was found")
@requires(Permission.ASK)
def delete_research(research_id: ResearchId, research: ResearchDependency) -> None:
    research.delete(research_id)


@router.get(
    f"{_ONE}/events",
    status_code=200,
    response_class=EventStream,
    responses=_EVENTS,
    summary="Follow research",
)
@requires(Permission.ASK)
def follow_research(
    follower: ResearchFollowerDependency,
    asker: AskerDependency,
    state: AppStateDependency,
    first: FirstEventDependency,
) -> Response:
    """Server-sent events, of which the last is `done`, `stopped` or `failed`. The id of each is its number in the run, so that a client that
    comes again receives the rest. In the place of what rests on sources that you may not read now comes `withheld`. Events are kept for a
    day after the end."""
    return open_stream(follower, first, state, asker)


@router.get(
    f"{_ONE}/report",
    status_code=200,
    response_class=Response,
    responses=_REPORT,
    summary="Return the report as a document",
)
@requires(Permission.ASK)
def get_research_report(
    research_id: ResearchId,
    research: ResearchDependency,
    format: Annotated[Literal["markdown", "docx"], Query()] = "markdown",  # noqa: A002 (a query parameter)
) -> Response:
    """Markdown has the sources as footnotes (`[^1]`), a Word document under their numbers. 403 where it rests on sources that you may not
    read now."""
    name = f'attachment; filename="research.{"docx" if format == "docx" else "md"}"'
    headers = {"Content-Disposition": name, "X-Content-Type-Options": "nosniff"}
    if format == "docx":
        return Response(
            write_docx(research.get_report(research_id)), media_type=DOCX, headers=headers
        )
    return Response(research.export_report(research_id), media_type=_MARKDOWN, headers=headers)
