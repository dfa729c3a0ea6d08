"""One request under way: its id, who asks, and whether anybody still waits for the answer."""

import asyncio
from typing import Annotated

from fastapi import Depends, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexing.runtime.deadline import CancelToken

_KEY = "quarry.visit"


class Visit:
    """Changed by the request it belongs to, and by nothing else."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.cancel_token = CancelToken()
        self.is_gone = False
        """The client has closed its connection before it had the whole answer."""
        self.is_answered = False
        self.asker: str | None = None
        """Its kind, once it is known."""
        self.asked = ""
        """What it is about; logged for debugging only."""


def begin_visit(scope: Scope, request_id: str) -> Visit:
    visit = Visit(request_id)
    scope[_KEY] = visit
    return visit


def visit_in(scope: Scope) -> Visit:
    visit: Visit = scope[_KEY]
    return visit


# Dependencies that wait for nothing are asynchronous: others each take a turn in a thread.
async def visit_of(request: Request) -> Visit:
    return visit_in(request.scope)


async def get_cancel_token(request: Request) -> CancelToken:
    """Set when the client goes away, and when the server stops."""
    return visit_in(request.scope).cancel_token


VisitIs = Annotated[Visit, Depends(visit_of)]
CancelTokenDependency = Annotated[CancelToken, Depends(get_cancel_token)]


class Visits:
    """All requests under way."""

    def __init__(self) -> None:
        self._under_way: set[Visit] = set()
        self._is_closed = False

    def enter(self, visit: Visit) -> None:
        self._under_way.add(visit)
        if self._is_closed:
            visit.cancel_token.cancel()

    def leave(self, visit: Visit) -> None:
        self._under_way.discard(visit)

    def close(self) -> None:
        """The server stops: what is under way is given up, and so is what may still come."""
        self._is_closed = True
        for visit in list(self._under_way):
            visit.cancel_token.cancel()


class Departures:
    """Notices when a client goes away, also while a thread works on its request."""

    def __init__(self, app: ASGIApp, visits: Visits) -> None:
        self._app = app
        self._visits = visits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        visit = visit_in(scope)
        # One at a time: what the application does not take is not read from the socket.
        messages: asyncio.Queue[Message] = asyncio.Queue(maxsize=1)
        watching = asyncio.create_task(_watch(visit, receive, messages))
        self._visits.enter(visit)
        try:
            return await self._app(scope, messages.get, send)
        finally:
            self._visits.leave(visit)
            watching.cancel()


async def _watch(visit: Visit, receive: Receive, messages: asyncio.Queue[Message]) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            # The server also tells of a disconnect once all has been sent.
            visit.is_gone = not visit.is_answered
            visit.cancel_token.cancel()
            await messages.put(message)
            return
        await messages.put(message)
