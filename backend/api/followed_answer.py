"""The events of an answer of a conversation, or of a research run, as its followers receive them."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, aclosing, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.responses import Response

from backend.api.answer_events import FAILURES, describe_failure
from backend.api.authorization import Asker
from backend.api.dependencies import AppState
from backend.api.server_sent_events import (
    Event,
    EventStream,
    LastEvents,
    SentEvent,
    SentEvents,
    until_last,
)
from backend.conversations.followed_turn import FollowPosition, Seen
from backend.conversations.turn_events import NumberedEvent
from backend.conversations.turn_notifications import Wake
from indexing.runtime.deadline import CancelToken


class Follower(Protocol):
    """Looks again and again at what any process writes."""

    @property
    def cancel_token(self) -> CancelToken:
        """Cancelled when the follower is gone."""

    @property
    def pause(self) -> float:
        """Seconds until the next look, where no news comes before."""

    def listen(self, wake: Wake) -> AbstractContextManager[None]:
        """Call `wake` with all news of it during the block."""

    def has_more(self, after: int) -> bool:
        """Return whether events follow this number, or may follow it. Raises NotFoundError."""

    def look(self, position: FollowPosition) -> Seen:
        """Return the events behind a position. Raises FAILURES: nothing more may be shown."""


@dataclass(frozen=True, slots=True)
class _StoredEvents:
    """What one look found, at least one event: each write to a client costs more than the events in it."""

    events: tuple[NumberedEvent, ...]

    @property
    def is_last(self) -> bool:
        return self.events[-1].is_last

    def encoded(self, number: int) -> bytes:
        del number
        return b"".join(_format(one.name, one.data, f"id: {one.number}\n") for one in self.events)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Ends a stream without a number: it is no event of the turn, and tells nothing of it."""

    event: Event
    is_last = True

    def encoded(self, number: int) -> bytes:
        del number
        return _format(self.event.name, self.event.data.model_dump(mode="json"), "")


@dataclass(frozen=True, slots=True)
class _NothingMore:
    """Ends a stream in which nothing was sent: the turn is over, and had no event behind the number."""

    is_last = True

    def encoded(self, number: int) -> bytes:
        del number
        return b""


def open_stream(follower: Follower, after: int, state: AppState, asker: Asker) -> Response:
    """Return the events behind a number as a response; 204 where nothing follows.

    Raises:
        NotFoundError
    """
    if not follower.has_more(after):
        return Response(status_code=204)

    def begin() -> SentEvents:
        return until_last(follow_answer(follower, after, state.turns.followers))

    return EventStream(
        begin, state.pools.followed_answers, asker.turn_key, LastEvents(stopping=None)
    )


async def follow_answer(
    follower: Follower, after: int, threads: Executor
) -> AsyncGenerator[SentEvent, None]:
    """Yield the events behind a number; what is withheld ends with an `error` without a number. Takes what `follow_events` does."""
    is_empty = True
    try:
        async with aclosing(_follow(follower, after, threads)) as portions:
            async for events in portions:
                is_empty = False
                yield _StoredEvents(events)
        if is_empty:
            yield _NothingMore()
    except FAILURES as error:
        yield _Refusal(Event("error", describe_failure(error)))


async def follow_events(
    follower: Follower, after: int, threads: Executor
) -> AsyncGenerator[NumberedEvent, None]:
    """Yield the events behind a number, until the last one or until the follower is gone.

    Args:
        threads: in which it looks; between two looks it waits on the event loop, without a thread.

    Raises:
        FAILURES: nothing more may be shown.
    """
    async with aclosing(_follow(follower, after, threads)) as portions:
        async for events in portions:
            for event in events:
                yield event


async def _follow(
    follower: Follower, after: int, threads: Executor
) -> AsyncGenerator[tuple[NumberedEvent, ...], None]:
    """Yield what each look finds, where it finds something."""
    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop is closed: the server has ended
            loop.call_soon_threadsafe(woken.set)

    position = FollowPosition(after)
    with follower.listen(wake):
        while not follower.cancel_token.is_cancelled:
            woken.clear()
            seen = await loop.run_in_executor(threads, follower.look, position)
            if seen.events:
                yield seen.events
            if seen.is_over:
                return
            position = seen.position
            with suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), follower.pause)


def _format(name: str, data: Mapping[str, Any], number: str) -> bytes:
    # JSON has no line breaks outside of strings, and those within are escaped.
    encoded = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {encoded}\n{number}\n".encode()
