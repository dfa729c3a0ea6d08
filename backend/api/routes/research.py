"""`/api/research`: questions that take many searches, planned with you, and reported with their sources."""

from datetime import date
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response

from backend.api import openapi
from backend.api import research_responses as responses
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.conversation_dependencies import FirstEventDependency
from backend.api.dependencies import (
    AppStateDependency,
    AssistantIdField,
    AssistantsDependency,
    ChatDependency,
    WebSessionsDependency,
)
from backend.api.followed_answer import open_stream
from backend.api.languages import find_language
from backend.api.list_positions import LONGEST_POSITION
from backend.api.request_context import RequestContextDependency
from backend.api.research_dependencies import (
    ResearchDependency,
    ResearchFollowerDependency,
    ResearchId,
)
from backend.api.routes.ask import Question
from backend.api.server_sent_events import EventStream
from backend.composition.research import NO_MODEL
from backend.conversations.assistant_service import AssistantService
from backend.research.record.budget import MOST_MINUTES, ResearchBudget
from backend.research.record.plan import LONGEST_QUESTION, MAX_TASKS
from backend.research.record.request import ResearchRequest
from backend.research.runs.report_docx import DOCX, write_docx
from backend.research.runs.service import LONGEST_ANSWER, ResearchOrder
from backend.schemas.research import OpenedResearchResponse, ResearchRunsResponse
from backend.schemas.search import FiltersBody
from backend.web_search.search import SWITCHED_OFF
from connectors.errors import ConflictError

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


class ResearchBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"question": "How do our parental leave rules compare between countries?"}]
        },
    )

    question: Question
    knowledge: bool = Field(default=True, description="Whether company knowledge is searched")
    web: bool = Field(default=False, description="Whether the web is searched")
    filters: FiltersBody = FiltersBody()
    minutes: Annotated[
        int, Field(ge=1, le=MOST_MINUTES, description="It takes so long at most")
    ] = 10
    confirm: bool = Field(
        default=True,
        description="Whether questions back and the plan wait for you; without it, the research starts at once",
    )
    conversation_id: AssistantIdField | None = Field(
        default=None, description="Your conversation that it goes on from"
    )
    project_id: AssistantIdField | None = Field(
        default=None,
        description="The project whose members see it too; its instructions are followed, and its files are searched",
    )
    assistant_id: AssistantIdField | None = Field(
        default=None,
        description="The assistant whose instructions are followed, and to whose documents the search is limited; a"
        " conversation has its own",
    )

    @model_validator(mode="after")
    def _check_sides(self) -> "ResearchBody":
        if not (self.knowledge or self.web):
            raise ValueError("search company knowledge, the web, or both")
        if self.conversation_id is not None and self.assistant_id is not None:
            raise ValueError("name a conversation, which has its assistant, or an assistant")
        return self

    def make_request(self, request: Request) -> ResearchRequest:
        return ResearchRequest(
            question=self.question,
            uses_documents=self.knowledge,
            uses_web=self.web,
            filters=self.filters.filters(),
            language=find_language(request),
            budget=ResearchBudget(seconds=60.0 * self.minutes),
            today=date.today(),
        )


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
def start_research(
    body: ResearchBody,
    request: Request,
    research: ResearchDependency,
    chat: ChatDependency,
    web_sessions: WebSessionsDependency,
    assistants: AssistantsDependency,
    context: RequestContextDependency,
) -> OpenedResearchResponse:
    """It goes on whether anybody follows it or not, also when the server is restarted; its events are at .../events."""
    context.query = body.question
    if body.web and not web_sessions.is_on:
        raise ConflictError(SWITCHED_OFF)
    if chat.model is None:
        raise ConflictError(NO_MODEL)
    order = ResearchOrder(
        request=body.make_request(request),
        confirms_plan=body.confirm,
        conversation_id=body.conversation_id,
        project_id=body.project_id,
        assistant_id=_find_assistant(body, assistants),
    )
    return responses.make_opened(research.begin(order, assistants.find_settings_of_conversation))


def _find_assistant(body: ResearchBody, assistants: AssistantService) -> str | None:
    """Return None for the default one. Raises NotFoundError: there is no such assistant, or it is not for the asker."""
    if body.assistant_id is None:
        return None
    found = assistants.get(body.assistant_id)
    return None if found.is_default else found.id


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
