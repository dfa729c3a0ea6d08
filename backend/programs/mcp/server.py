"""The server: from a message of the protocol to one function, and back."""

import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
)
from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from backend.programs.mcp import answers, documents, resources
from backend.programs.mcp.asker import DocumentAccess, McpAsker, ToolError
from backend.programs.mcp.research import report_research
from backend.programs.mcp.tool_definitions import ASK, FETCH, INSTRUCTIONS, RESEARCH, SEARCH
from backend.programs.search_failures import describe_search_error
from backend.schemas.answer import AnswerDoneEvent
from backend.schemas.base import Schema
from backend.schemas.mcp_tool import (
    AskArguments,
    FetchArguments,
    ResearchArguments,
    SearchArguments,
)
from backend.schemas.system import ProblemDetails
from backend.version import read_version
from connectors.errors import NotFoundError, QuarryError
from indexing.runtime.deadline import DeadlineExceededError

LOG = logging.getLogger("quarry.mcp")

MOST_FAULTS = 5
"""Of arguments that do not fit, in one message."""

Arguments = TypeVar("Arguments", bound=BaseModel)
Found = TypeVar("Found")
Context: TypeAlias = ServerRequestContext[Any, Request]
FindAsker: TypeAlias = Callable[[Context], McpAsker]
"""Returns who sent a message."""


def make_server(find_asker: FindAsker) -> Server[Any]:
    handlers = _Handlers(find_asker)
    server = Server[Any](
        "quarry",
        title="Quarry",
        version=read_version(),
        instructions=INSTRUCTIONS,
        # No argument of the tools is repeated in a header.
        get_tool_input_schema=dict[str, Mapping[str, Any]]().get,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
    )
    # In the place of the tracing that comes with it: no telemetry leaves the server.
    server.middleware[:] = [_hide_internal_errors]
    return server


async def _hide_internal_errors(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Log an error of the program, of which the client learns nothing: its text may hold anything."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except Exception as error:
        LOG.exception("The call of an agent failed.")
        raise MCPError(INTERNAL_ERROR, "An internal error occurred. The log says more.") from error


class _Handlers:
    def __init__(self, find_asker: FindAsker) -> None:
        self._find_asker = find_asker

    async def list_tools(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        del params
        asker = self._find_asker(context)
        answering = [ASK] if asker.may_ask else []
        researching = [RESEARCH] if asker.may_research else []
        return ListToolsResult(tools=[SEARCH, FETCH, *answering, *researching])

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        try:
            return _to_result(await self._call(context, params.name, params.arguments or {}))
        except ToolError as error:
            return _to_failure(str(error))
        except NotFoundError as error:
            return _to_failure(str(error))
        except (QuarryError, DeadlineExceededError) as error:
            return _to_failure(describe_search_error(error))

    async def _call(self, context: Context, name: str, arguments: dict[str, Any]) -> Schema:
        asker = self._find_asker(context)
        match name:
            case SEARCH.name:
                wanted = _read_arguments(SearchArguments, arguments)
                asker.note_query(wanted.query)
                return await asker.read_documents(
                    lambda access: documents.search_documents(access, wanted)
                )
            case FETCH.name:
                named = _read_arguments(FetchArguments, arguments)
                return await asker.read_documents(
                    lambda access: documents.fetch_document(access, named)
                )
            case ASK.name if asker.may_ask:
                return await _ask(context, asker, _read_arguments(AskArguments, arguments))
            case RESEARCH.name if asker.may_research:
                steps = _Steps(context)
                return await report_research(
                    asker, _read_arguments(ResearchArguments, arguments), steps.report
                )
            case _:
                raise MCPError(INVALID_PARAMS, "There is no such tool.")

    async def list_resources(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        after = (params and params.cursor) or ""
        page = await _read(
            self._find_asker(context), lambda access: documents.list_documents(access, after)
        )
        return ListResourcesResult(
            resources=list(map(resources.to_resource, page)),
            next_cursor=resources.find_next(page),
        )

    async def list_resource_templates(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        del context, params
        return ListResourceTemplatesResult(resource_templates=[resources.TEMPLATE])

    async def read_resource(
        self, context: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        document_id = resources.read_id(params.uri)
        if document_id is None:
            raise MCPError(
                INVALID_PARAMS, f"A document is named {resources.TEMPLATE.uri_template}."
            )
        document = await _read(
            self._find_asker(context), lambda access: documents.find_document(access, document_id)
        )
        return ReadResourceResult(contents=[resources.to_contents(params.uri, document)])


async def _read(asker: McpAsker, work: Callable[[DocumentAccess], Found]) -> Found:
    """Read for a resource. Raises MCPError: there is no such resource, or nothing can be read now."""
    try:
        return await asker.read_documents(work)
    except NotFoundError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from error
    except ToolError as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from error
    except (QuarryError, DeadlineExceededError) as error:
        raise MCPError(INTERNAL_ERROR, describe_search_error(error)) from error


class _Steps:
    """What a call has reported as progress."""

    def __init__(self, context: Context) -> None:
        self._session = context.session
        self._told: str | None = None
        self._count = 0

    async def report(self, step: str | None) -> None:
        """Report a step, unless there is none, or it was the last one as well."""
        if step is not None and step != self._told:
            self._told, self._count = step, self._count + 1
            await self._session.report_progress(self._count, message=step)


async def _ask(context: Context, asker: McpAsker, asked: AskArguments) -> Schema:
    """Answer a question, and report each step as progress.

    Raises:
        ToolError: there is no answer.
    """
    asker.note_query(asked.question)
    steps = _Steps(context)
    async with aclosing(asker.answer(asked.question)) as events:
        async for event in events:
            match event:
                case AnswerDoneEvent(answer=answer):
                    return answers.make_answer(answer, asker.find_url)
                case ProblemDetails():
                    raise ToolError(answers.describe_problem(event))
                case _:
                    pass
            await steps.report(answers.describe_step(event))
    raise ToolError("The answer ended before it was complete. Ask again.")


def _read_arguments(kind: type[Arguments], arguments: dict[str, Any]) -> Arguments:
    """Read the arguments of a tool. Raises ToolError: they do not fit, and how."""
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ToolError(
            f"The arguments do not fit: {'; '.join(islice(faults, MOST_FAULTS))}."
        ) from error


def _to_result(found: Schema) -> CallToolResult:
    """Return a result as structured content, and as text for clients that know none."""
    text = TextContent(text=found.model_dump_json())
    return CallToolResult(content=[text], structured_content=found.model_dump(mode="json"))


def _to_failure(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=message)], is_error=True)
