"""Server-sent events to a client that may be slow or gone.

The events are produced in a thread of their own, which waits when the client does not keep up: a few events
are in memory, never a whole answer. When the client goes away, the producer is stopped.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, aclosing, closing, suppress
from dataclasses import dataclass
from itertools import count
from typing import Protocol, TypeAlias

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from backend.api import problem_details
from backend.api.problem_details import Problem
from backend.api.request_context import RequestContext, get_request_context
from backend.api.request_pools import FairPool

KEEP_ALIVE = 15.0
"""Seconds of silence after which a comment is sent, so that no proxy closes the stream."""
PATIENCE = 60.0
"""Seconds that a client may take to read what is sent; after that its stream is closed."""
MOST_WAITING = 64
"""Events of one stream that lie in memory."""

LOG = logging.getLogger("quarry.events")


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    data: BaseModel

    @property
    def is_last(self) -> bool:
        return self.name in {"done", "error"}

    def encoded(self, number: int) -> bytes:
        return format_sse_event(
            data_str=self.data.model_dump_json(), event=self.name, id=str(number)
        )


class SentEvent(Protocol):
    @property
    def is_last(self) -> bool: ...

    def encoded(self, number: int) -> bytes:
        """Encode it as the event of this number in its stream, unless it has another."""


Events: TypeAlias = AsyncGenerator[Event, None]
SentEvents: TypeAlias = AsyncGenerator[SentEvent, None]
EventFactory: TypeAlias = Callable[[], Generator[SentEvent, None, None]]

STOPPING = Event("error", problem_details.STOPPING)
BROKEN = Event("error", problem_details.BROKEN)


@dataclass(frozen=True, slots=True)
class LastEvents:
    """What ends a stream that does not come to its own end."""

    stopping: SentEvent | None = STOPPING
    """Where the server stops; None where the client shall come again."""
    broken: SentEvent = BROKEN
    """In place of an event that cannot be encoded."""


class EventStream(Response):
    """An answer of events. The last is `done` or `error`, unless `last` says otherwise.

    It begins when the asker has a slot of the pool, and is refused if it gets none.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: Callable[[], SentEvents],
        pool: FairPool,
        asker: str,
        last: LastEvents = LastEvents(),
    ) -> None:
        self.status_code = 200
        self.background = None
        self._events = events
        self._pool = pool
        self._asker = asker
        self._last = last
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = get_request_context(scope)
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(self._pool.slot(self._asker, context.cancel_token))
            except Problem as refusal:
                refused = problem_details.respond(scope, refusal.problem, refusal.headers)
                await refused(scope, receive, send)
                return
            await self._stream(send, context)

    async def _stream(self, send: Send, context: RequestContext) -> None:
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        await send(start)
        events = self._events()
        encoded = _encoded(events, context, self._last)
        try:
            async for piece in encoded:
                message = {"type": "http.response.body", "body": piece, "more_body": True}
                await asyncio.wait_for(send(message), PATIENCE)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            context.is_disconnected = True
        finally:
            context.cancel_token.cancel()
            await encoded.aclose()
            await events.aclose()


async def _encoded(
    events: SentEvents, context: RequestContext, last: LastEvents
) -> AsyncGenerator[bytes, None]:
    """Yield events with their numbers, up to the last, and comments where none comes; until it is to stop."""
    loop, stopped, numbers = asyncio.get_running_loop(), asyncio.Event(), count(1)
    with context.cancel_token.on_cancel(lambda: loop.call_soon_threadsafe(stopped.set)):
        stopping = asyncio.ensure_future(stopped.wait())
        coming = asyncio.ensure_future(_next(events))
        try:
            while True:
                await asyncio.wait(
                    {stopping, coming}, timeout=KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED
                )
                if stopping.done():
                    if last.stopping is not None and not context.is_disconnected:
                        yield last.stopping.encoded(next(numbers))
                    return
                if not coming.done():
                    yield KEEPALIVE_COMMENT
                    continue
                if (event := coming.result()) is None:
                    return
                event, piece = _encode(event, next(numbers), last.broken)
                yield piece
                if event.is_last:
                    return
                coming = asyncio.ensure_future(_next(events))
        finally:
            for task in (stopping, coming):
                task.cancel()
            await asyncio.gather(stopping, coming, return_exceptions=True)


def _encode(event: SentEvent, number: int, broken: SentEvent) -> tuple[SentEvent, bytes]:
    """Encode an event, or in place of one that cannot be encoded the one that ends the stream."""
    try:
        return event, event.encoded(number)
    except ValueError:
        LOG.exception("An event could not be encoded.")
        return broken, broken.encoded(number)


async def _next(events: SentEvents) -> SentEvent | None:
    return await anext(events, None)


async def from_thread(make: EventFactory, broken: SentEvent = BROKEN) -> SentEvents:
    """Run `make` in a thread and yield its items. Closing this closes it, as soon as it yields.

    Args:
        broken: the last event where `make` ends without one.
    """
    pipe = Pipe(asyncio.get_running_loop())
    threading.Thread(target=_produce, args=(make, pipe, broken), name="stream", daemon=True).start()
    try:
        while (event := await pipe.take()) is not None:
            yield event
    finally:
        pipe.close()


async def until_last(events: SentEvents) -> SentEvents:
    """Yield the events; where they end without a last one, by an error of the program as well, BROKEN ends them."""
    last: SentEvent | None = None
    async with aclosing(events):
        try:
            async for event in events:
                yield event
                last = event
        except Exception:
            # The client must not wait for more.
            LOG.exception("A stream of events failed.")
    if last is None or not last.is_last:
        yield BROKEN


def _produce(make: EventFactory, pipe: "Pipe", broken: SentEvent) -> None:
    last: SentEvent | None = None
    try:
        with closing(make()) as events:
            for event in events:
                if not pipe.put(event):
                    return
                last = event
    except Exception:
        # An error in the program. The thread ends here; the client must not wait for more.
        LOG.exception("A stream of events failed.")
    finally:
        if last is None or not last.is_last:
            pipe.put(broken)
        pipe.end()


class Pipe:
    """A bounded queue of events from a thread to the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, patience: float = PATIENCE) -> None:
        self._loop = loop
        self._patience = patience
        self._arrived = asyncio.Event()
        self._waiting: deque[SentEvent] = deque()
        self._moved = threading.Condition()
        self._closed = False
        self._ended = False

    def put(self, event: SentEvent) -> bool:
        """Wait for space; whether the client still reads. Called by the producing thread."""
        with self._moved:
            has_space = self._moved.wait_for(
                lambda: self._closed or len(self._waiting) < MOST_WAITING, self._patience
            )
            if self._closed or not has_space:
                self._closed = True
                return False
            self._waiting.append(event)
        self._wake()
        return True

    def end(self) -> None:
        """Note that no more events follow. Called by the producing thread."""
        with self._moved:
            self._ended = True
        self._wake()

    async def take(self) -> SentEvent | None:
        """Return the next event; None at the end. Called by the event loop."""
        while True:
            with self._moved:
                if self._waiting:
                    self._moved.notify_all()
                    return self._waiting.popleft()
                if self._ended:
                    return None
                self._arrived.clear()
            await self._arrived.wait()

    def close(self) -> None:
        """Forget what waits, as the client reads no more."""
        with self._moved:
            self._closed = True
            self._waiting.clear()
            self._moved.notify_all()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: the server has ended
            self._loop.call_soon_threadsafe(self._arrived.set)
