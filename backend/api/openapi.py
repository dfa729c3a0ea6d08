"""Complete the OpenAPI description: examples of responses, problem details, event streams."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from backend.api import openai_errors, problem_details
from backend.api.server_sent_events import STOPPING, Event, EventStream
from backend.schemas.answer import (
    AnswerDoneEvent,
    CitationEvent,
    PassagesEvent,
    ReasoningEvent,
    TextEvent,
)
from backend.schemas.conversation import TurnEndedEvent
from backend.schemas.file import FilesGivenResponse
from backend.schemas.kept_knowledge import EarlierFindingsEvent
from backend.schemas.knowledge import KnowledgeFile
from backend.schemas.new_document import NewFile
from backend.schemas.oauth import ClientMetadata, OAuthErrorResponse
from backend.schemas.openai_completion import ChatCompletionChunk
from backend.schemas.openai_error import OpenAiErrorResponse
from backend.schemas.research import ResearchReportResponse, TaskReportResponse
from backend.schemas.research_events import (
    ActionDoneEvent,
    ActionStartedEvent,
    CitedSourcesEvent,
    ClarificationEvent,
    EarlierFindingsUsedEvent,
    PlanEvent,
    ReportCheckedEvent,
    ReportStartedEvent,
    ReportsWithdrawnEvent,
    ResearchEndedEvent,
    ResearchStateEvent,
    ResumedEvent,
    RoundEvent,
    SourceFoundEvent,
    TaskStartedEvent,
    WithheldEvent,
)
from backend.schemas.run import ProgressEvent, SyncReport
from backend.schemas.search import NarrowedEvent, QueriesEvent, ResultsEvent, StepFailedEvent
from backend.schemas.system import ProblemDetails, ReadinessResponse
from backend.schemas.web_lookup import PagesReadEvent, PlannedEvent, WebSearchedEvent

Json: TypeAlias = dict[str, Any]

JSON, EVENTS = "application/json", EventStream.media_type

ANSWER_EVENTS = (
    Event("queries", QueriesEvent.example()),
    Event("narrowed", NarrowedEvent.example()),
    Event("first_results", ResultsEvent.example()),
    Event("planned", PlannedEvent.example()),
    Event("lost", StepFailedEvent.example()),
    Event("results", ResultsEvent.example()),
    Event("selected", ResultsEvent.example()),
    Event("web_searched", WebSearchedEvent.example()),
    Event("pages_read", PagesReadEvent.example()),
    Event("earlier_findings", EarlierFindingsEvent.example()),
    Event("passages", PassagesEvent.example()),
    Event("reasoning", ReasoningEvent.example()),
    Event("citation", CitationEvent.example()),
    Event("text", TextEvent.example()),
    Event("done", AnswerDoneEvent.example()),
    STOPPING,
)
FOLLOWED_EVENTS = (
    Event("files", FilesGivenResponse.example()),
    *ANSWER_EVENTS,
    Event("stopped", TurnEndedEvent.example()),
    Event("interrupted", TurnEndedEvent.example()),
)
RESEARCH_EVENTS = (
    Event("clarification", ClarificationEvent.example()),
    Event("earlier_findings", EarlierFindingsUsedEvent.example()),
    Event("plan", PlanEvent.example()),
    Event("state", ResearchStateEvent.example()),
    Event("resumed", ResumedEvent.example()),
    Event("task_started", TaskStartedEvent.example()),
    Event("action_started", ActionStartedEvent.example()),
    Event("source", SourceFoundEvent.example()),
    Event("action_done", ActionDoneEvent.example()),
    Event("cited_sources", CitedSourcesEvent.example()),
    Event("task_done", TaskReportResponse.example()),
    Event("round", RoundEvent.example()),
    Event("reports_withdrawn", ReportsWithdrawnEvent.example()),
    Event("report_started", ReportStartedEvent.example()),
    Event("report_checked", ReportCheckedEvent.example()),
    Event("text", TextEvent.example()),
    Event("report", ResearchReportResponse.example()),
    Event("withheld", WithheldEvent.example()),
    Event("done", ResearchEndedEvent.example()),
    Event("stopped", ResearchEndedEvent.example()),
    Event("failed", ResearchEndedEvent.example()),
    STOPPING,
)
SYNC_EVENTS = (
    Event("progress", ProgressEvent.example()),
    Event("done", SyncReport.example()),
    STOPPING,
)


BEARER: Json = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API token (quarry tokens create), or the secret of the machine: machine.secret in the home of"
    " Quarry.",
}


def describe_problem(description: str) -> Json:
    example = ProblemDetails.example().model_dump(mode="json", exclude_none=True)
    content = {
        problem_details.MEDIA_TYPE: {"schema": _reference(ProblemDetails), "example": example}
    }
    return {"description": description, "content": content}


def describe_stream(events: tuple[Event, ...]) -> Json:
    """Describe a stream by an example and the shape of each event, in words of OpenAPI 3.2, which 3.1 allows."""
    examples = {
        event.name: {"value": event.encoded(number).decode()}
        for number, event in enumerate(events, start=1)
    }
    content = {"itemSchema": {"oneOf": list(map(_event_shape, events))}, "examples": examples}
    return {"description": "Server-sent events", "content": {EVENTS: content}}


def complete(description: Json) -> None:
    """Add what the framework does not know, and remove its claim that a stream is one text."""
    shapes = description["components"]["schemas"]
    shapes |= _schemas()
    description["components"]["securitySchemes"] = {"secret": BEARER}
    description["security"] = [{"secret": []}]
    for path, methods in description["paths"].items():
        for operation in methods.values():
            # FastAPI adds it to every route that takes something; below /v1 it is 400.
            if path.startswith(openai_errors.PREFIX):
                operation["responses"].pop("422", None)
            for response in operation["responses"].values():
                content = response.get("content", {})
                content.get(EVENTS, {}).pop("schema", None)
                _add_example(content.get(JSON, {}), shapes)


def _add_example(content: Json, shapes: Json) -> None:
    """Show the example of the model that a response contains, or of the items of its list."""
    schema = content.get("schema", {})
    reference = schema.get("$ref") or schema.get("items", {}).get("$ref")
    if reference and "example" not in content:
        example = shapes[reference.rpartition("/")[2]]["examples"][0]
        content["example"] = example if "$ref" in schema else [example]


def _event_shape(event: Event) -> Json:
    return {
        "type": "object",
        "required": ["id", "event", "data"],
        "properties": {
            "id": {"type": "string"},
            "event": {"const": event.name},
            "data": {
                "type": "string",
                "contentMediaType": JSON,
                "contentSchema": _reference(type(event.data)),
            },
        },
    }


def _schemas() -> Mapping[str, Any]:
    """Return the shapes that no route returns or takes by itself: problems, data of events, what is said of a file."""
    models = {type(event.data) for event in (*FOLLOWED_EVENTS, *RESEARCH_EVENTS, *SYNC_EVENTS)}
    models |= {ProblemDetails, OpenAiErrorResponse, OAuthErrorResponse, ChatCompletionChunk}
    returned = sorted(models, key=lambda model: model.__name__)
    _, described = models_json_schema(
        [
            *((model, "serialization") for model in returned),
            (NewFile, "validation"),
            (ClientMetadata, "validation"),
            (KnowledgeFile, "validation"),
        ],
        ref_template="#/components/schemas/{model}",
    )
    found: Mapping[str, Any] = described["$defs"]
    return found


def _reference(model: type[BaseModel]) -> Json:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


FILE: Json = {
    "description": "The file as it was read",
    "content": {"*/*": {"schema": {"type": "string", "format": "binary"}, "example": "%PDF-1.7 …"}},
}
IMAGE: Json = {
    "description": "The page, as a WebP image",
    "content": {
        "image/webp": {"schema": {"type": "string", "format": "binary"}, "example": "RIFF…"}
    },
}
AUDIT_FILE: Json = {
    "description": "The actions, newest first",
    "content": {
        "text/csv": {
            "schema": {"type": "string"},
            "example": "id,at,actor,address,action,subject,outcome,detail\r\n"
            "12,2026-03-02T09:30:00Z,owner,,pause,handbook,done,{}\r\n",
        },
        "application/jsonl": {"schema": {"type": "string"}},
    },
}
UNREADY: Json = {
    "description": "Some part is not ready",
    "content": {
        JSON: {
            "schema": _reference(ReadinessResponse),
            "example": {
                "ready": False,
                "parts": [{"name": "embedding model", "state": "waiting", "detail": ""}],
            },
        }
    },
}
PROBLEMS: dict[int | str, Json] = {
    400: describe_problem("The request cannot be read"),
    401: describe_problem("It proves nobody, or what should prove it is not valid"),
    403: describe_problem("It comes from another site, or you may not do this"),
    404: describe_problem("It does not exist, or you may not read it"),
    405: describe_problem("Not with this method"),
    413: describe_problem("The request is too long"),
    421: describe_problem("It is addressed to a name that is not this machine's"),
    422: describe_problem("The request is not valid"),
    500: describe_problem("An internal error, or damaged data"),
    502: describe_problem("A source refused the credential or failed"),
    503: describe_problem("Not now, or not configured; see the advice"),
    504: describe_problem("The time limit was reached"),
}
"""Of every route."""


def _describe_openai_problem(described: Json) -> Json:
    example = OpenAiErrorResponse.example().model_dump(mode="json")
    content = {JSON: {"schema": _reference(OpenAiErrorResponse), "example": example}}
    return {"description": described["description"], "content": content}


OPENAI_PROBLEMS: dict[int | str, Json] = {
    status: _describe_openai_problem(described) for status, described in PROBLEMS.items()
}
"""Of every route below `/v1`."""
COMPLETION_STREAM: Json = {
    "description": "The answer; where `stream` is true, its chunks as server-sent events without names, after the last of them `[DONE]`",
    "content": {
        EVENTS: {
            "itemSchema": {
                "type": "object",
                "required": ["data"],
                "properties": {
                    "data": {
                        "type": "string",
                        "contentMediaType": JSON,
                        "contentSchema": _reference(ChatCompletionChunk),
                    }
                },
            },
            "example": f"data: {ChatCompletionChunk.example().model_dump_json()}\n\ndata: [DONE]\n\n",
        }
    },
}
RESPONSE_STREAM: Json = {
    "description": "The answer; where `stream` is true, as server-sent events with the names of OpenAI's, of which the last is"
    " `response.completed`, `response.incomplete` or `response.failed`",
    "content": {
        EVENTS: {
            "itemSchema": {"type": "object", "required": ["event", "data"]},
            "example": "event: response.output_text.delta\ndata: "
            '{"type": "response.output_text.delta", "sequence_number": 4, "output_index": 0, "item_id": "msg_1",'
            ' "content_index": 0, "delta": "Parents", "logprobs": []}\n\n',
        }
    },
}
