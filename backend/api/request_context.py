"""The context of a request: its id, its asker, and whether its client is still connected."""

import asyncio
from typing import Annotated

from fastapi import Depends, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexing.runtime.deadline import CancelToken

_KEY = "quarry.context"


class RequestContext:
    """Changed by the request it belongs to, and by nothing else."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.cancel_token = CancelToken()
        self.is_disconnected = False
        """The client has closed its connection before it had the whole answer."""
        self.is_answered = False
        self.asker: str | None = None
        """The kind of the asker, once it is authenticated."""
        self.has_accounts = False
        """Whether people sign in, as far as the authentication of the request has asked."""
        self.origin = ""
        """Of the server as the client addresses it, such as https://quarry.example.com; set once the address is checked."""
        self.query = ""
        """The query or the question; logged at level DEBUG only."""


def create_request_context(scope: Scope, request_id: str) -> RequestContext:
    context = RequestContext(request_id)
    scope[_KEY] = context
    return context


def get_request_context(scope: Scope) -> RequestContext:
    context: RequestContext = scope[_KEY]
    return context


# Dependencies that wait for nothing are asynchronous: others each take a turn in a thread.
async def request_context(request: Request) -> RequestContext:
    return get_request_context(request.scope)


async def get_cancel_token(request: Request) -> CancelToken:
    """Return the token that is cancelled when the client disconnects or the server stops."""
    return get_request_context(request.scope).cancel_token


RequestContextDependency = Annotated[RequestContext, Depends(request_context)]
CancelTokenDependency = Annotated[CancelToken, Depends(get_cancel_token)]


class ActiveRequests:
    """All requests in progress."""

    def __init__(self) -> None:
        self._requests: set[RequestContext] = set()
        self._is_closed = False

    def enter(self, context: RequestContext) -> None:
        self._requests.add(context)
        if self._is_closed:
            context.cancel_token.cancel()

    def leave(self, context: RequestContext) -> None:
        self._requests.discard(context)

    def close(self) -> None:
        """Cancel all requests in progress and all that still arrive: the server stops."""
        self._is_closed = True
        for context in list(self._requests):
            context.cancel_token.cancel()


class DisconnectMiddleware:
    """Cancels a request when its client disconnects, also while a thread works on it."""

    def __init__(self, app: ASGIApp, active_requests: ActiveRequests) -> None:
        self._app = app
        self._active_requests = active_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        context = get_request_context(scope)
        # One at a time: what the application does not receive is not read from the socket.
        messages: asyncio.Queue[Message] = asyncio.Queue(maxsize=1)
        watching = asyncio.create_task(_watch(context, receive, messages))
        self._active_requests.enter(context)
        try:
            return await self._app(scope, messages.get, send)
        finally:
            self._active_requests.leave(context)
            watching.cancel()


async def _watch(
    context: RequestContext, receive: Receive, messages: asyncio.Queue[Message]
) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            # The server also sends a disconnect once the whole response has been sent.
            context.is_disconnected = not context.is_answered
            context.cancel_token.cancel()
            await messages.put(message)
            return
        await messages.put(message)
