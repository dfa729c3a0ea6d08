"""`/mcp`: the documents for agents, by the Model Context Protocol (streamable HTTP)."""

from fastapi import APIRouter, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from backend.access.oauth.resources import ProtectedResource
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import (
    AppStateDependency,
    ChatDependency,
    DatabaseDependency,
    takes_turns_itself,
)
from backend.api.mcp_asker import HttpAsker
from backend.api.request_context import RequestContextDependency
from backend.programs.mcp.http_transport import HttpTransport

router = APIRouter()


class McpResponse(Response):
    """What the transport answers to a request."""

    def __init__(self, transport: HttpTransport) -> None:
        super().__init__()
        self._transport = transport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._transport.answer(scope, receive, send)


# The protocol describes itself. A GET would open a stream that nothing is ever sent on.
@router.post(ProtectedResource.MCP, include_in_schema=False)
@requires(Permission.SEARCH)
@takes_turns_itself
async def answer_mcp(
    request: Request,
    asker: AskerDependency,
    chat: ChatDependency,
    database: DatabaseDependency,
    state: AppStateDependency,
    context: RequestContextDependency,
) -> Response:
    """Answer one message, with the rights that its sender has now."""
    HttpAsker(
        request=request,
        asker=asker,
        chat=chat,
        database=database,
        state=state,
        context=context,
    ).attach()
    return McpResponse(state.mcp)
