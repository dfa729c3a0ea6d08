"""`/api/assistants`: instructions, a scope and a model under a name, to ask with."""

from collections.abc import Set
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import Response

from backend.api import openapi
from backend.api.authorization import Permission, requires
from backend.api.dependencies import AssistantId, AssistantIdField, AssistantsDependency
from backend.api.routes.ask import TriedQuestion, read_history
from backend.api.server_sent_events import EventStream
from backend.api.try_outs import TryOutDependency
from backend.conversations.assistant_values import (
    HIGHEST_TEMPERATURE,
    LONGEST_DESCRIPTION,
    LONGEST_INSTRUCTIONS,
    LONGEST_NAME,
    LONGEST_STARTER,
    MOST_NAMES,
    MOST_STARTERS,
)
from backend.schemas.assistant import AssistantResponse, AssistantsResponse
from backend.store.chat.assistants import AssistantValues, Visibility

router = APIRouter()
_ALL = "/api/assistants"
_ONE = f"{_ALL}/{{assistant_id}}"
_MAY_BE_NULL = {"model", "temperature"}

Name: TypeAlias = Annotated[str, Field(max_length=LONGEST_NAME)]
Description: TypeAlias = Annotated[str, Field(max_length=LONGEST_DESCRIPTION)]
Instructions: TypeAlias = Annotated[
    str,
    Field(
        max_length=LONGEST_INSTRUCTIONS,
        description="Given to the language model with each question; they cannot change the rules on citations",
    ),
]
Starters: TypeAlias = Annotated[
    tuple[str, ...],
    # Longer or more ones are refused below, by a sentence that people understand.
    Field(
        description=f"Questions to begin with: at most {MOST_STARTERS}, each of at most {LONGEST_STARTER} characters"
    ),
]
Names: TypeAlias = Annotated[
    tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=MOST_NAMES)
]
Domains: TypeAlias = Annotated[
    tuple[Annotated[str, Field(max_length=300)], ...], Field(max_length=MOST_NAMES)
]
ModelName: TypeAlias = Annotated[
    str, Field(max_length=100, description="A language model; null for the default one")
]
Temperature: TypeAlias = Annotated[float, Field(ge=0, le=HIGHEST_TEMPERATURE)]

_EXAMPLE: dict[str, JsonValue] = {
    "name": "Travel desk",
    "description": "Answers questions on trips and expenses.",
    "instructions": "Answer in two sentences, and name the form to use.",
    "starters": ["How do I book a train?"],
    "sources": ["handbook"],
}


class AssistantBody(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [_EXAMPLE]}
    )

    name: Name
    description: Description = ""
    instructions: Instructions = ""
    starters: Starters = ()
    sources: Names = Field(default=(), description="Only these are searched; none: all")
    sets: Names = Field(default=(), description="Only these document sets; none: all documents")
    model: ModelName | None = None
    temperature: Temperature | None = None
    searches: bool = Field(default=True, strict=True)
    searches_web: bool = Field(
        default=True,
        strict=True,
        description="Whether it may search the web, where that is switched on; one that does not search never does",
    )
    allowed_domains: Domains = Field(
        default=(), description="Of the web, with their subdomains; none: all that the admins allow"
    )
    blocked_domains: Domains = Field(default=(), description="Of the web, with their subdomains")
    visibility: Visibility = Field(
        default=Visibility.MINE, description="Only admins share: with `groups`, or with `all`"
    )
    groups: Names = Field(default=(), description="Those whose members may use it")

    def read(self) -> AssistantValues:
        names = AssistantValues.__dataclass_fields__
        return AssistantValues(**{name: getattr(self, name) for name in names})


class ChangeAssistantBody(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={"examples": [{"sources": [], "temperature": None}]},
    )

    name: Name | None = None
    description: Description | None = None
    instructions: Instructions | None = None
    starters: Starters | None = None
    sources: Names | None = None
    sets: Names | None = None
    model: ModelName | None = None
    temperature: Temperature | None = None
    searches: bool | None = None
    searches_web: bool | None = None
    allowed_domains: Domains | None = None
    blocked_domains: Domains | None = None
    visibility: Visibility | None = None
    groups: Names | None = None

    def read(self, except_for: Set[str] = frozenset()) -> dict[str, Any]:
        return {
            name: value
            for name in self.model_fields_set - except_for
            if (value := getattr(self, name)) is not None or name in _MAY_BE_NULL
        }


class TryAssistantBody(TriedQuestion):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"assistant": _EXAMPLE, "question": "How do I book a train?"}]
        },
    )

    assistant_id: AssistantIdField | None = Field(
        default=None, description="The one that is changed; null for a new one"
    )
    assistant: ChangeAssistantBody


@router.get(_ALL, summary="List the assistants that you may use")
@requires(Permission.ASK)
def list_assistants(assistants: AssistantsDependency) -> AssistantsResponse:
    shown = assistants.list_usable()
    return AssistantsResponse(assistants=tuple(map(AssistantResponse.from_shown, shown)))


@router.post(_ALL, status_code=201, summary="Make an assistant")
@requires(Permission.ASK)
def create_assistant(
    body: AssistantBody, assistants: AssistantsDependency, response: Response
) -> AssistantResponse:
    """It reads no more than whoever asks it may read, whatever it is limited to."""
    created = assistants.create(body.read())
    response.headers["Location"] = f"{_ALL}/{created.id}"
    return AssistantResponse.from_shown(created)


@router.post(
    f"{_ALL}/try",
    status_code=200,
    response_class=EventStream,
    responses={200: openapi.describe_stream(openapi.ANSWER_EVENTS)},
    summary="Ask an assistant that is not saved",
)
@requires(Permission.ASK)
def try_assistant(
    body: TryAssistantBody, assistants: AssistantsDependency, try_out: TryOutDependency
) -> EventStream:
    """Server-sent events as those of POST /api/ask. Nothing is kept. What is left out is as the assistant has it."""
    changes = body.assistant.read(except_for={"visibility", "groups"})
    settings = assistants.find_changed_settings(body.assistant_id, changes)
    return try_out.open(body.question, read_history(body.history), settings)


@router.get(_ONE, summary="Return an assistant")
@requires(Permission.ASK)
def get_assistant(assistant_id: AssistantId, assistants: AssistantsDependency) -> AssistantResponse:
    return AssistantResponse.from_shown(assistants.get(assistant_id))


@router.patch(_ONE, summary="Change an assistant")
@requires(Permission.ASK)
def change_assistant(
    assistant_id: AssistantId, body: ChangeAssistantBody, assistants: AssistantsDependency
) -> AssistantResponse:
    """The next question is answered so. Of the default assistant, admins change description, instructions and starters."""
    return AssistantResponse.from_shown(assistants.change(assistant_id, body.read()))


@router.delete(_ONE, status_code=204, summary="Delete an assistant")
@requires(Permission.ASK)
def delete_assistant(assistant_id: AssistantId, assistants: AssistantsDependency) -> None:
    """Conversations with it stay; another assistant goes on with them."""
    assistants.delete(assistant_id)
