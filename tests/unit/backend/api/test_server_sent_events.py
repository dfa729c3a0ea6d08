"""Streams of events: bounded, kept alive, and ended from either side. Without HTTP."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from backend.api import server_sent_events
from backend.api.request_context import RequestContext, create_request_context
from backend.api.request_pools import FairPool, PoolLimits
from backend.api.server_sent_events import (
    MOST_WAITING,
    Event,
    Events,
    EventStream,
    LastEvents,
    Pipe,
    from_thread,
)
from backend.schemas.answer import TextEvent
from tests.support.serving import events as read
from tests.unit.backend.api.conftest import PoolRecord

SOON = 10.0


def _text(text: str) -> Event:
    return Event("text", TextEvent(text=text))


DONE = Event("done", TextEvent(text="all"))


class Client:
    """The messages that the application sends to the server; `wait` is given how many messages it took before."""

    def __init__(self, wait: Callable[[int], Coroutine[Any, Any, None]] | None = None) -> None:
        self.messages: list[Message] = []
        self._wait = wait

    async def send(self, message: Message) -> None:
        if self._wait:
            await self._wait(len(self.messages))
        self.messages.append(message)

    @property
    def body(self) -> str:
        return b"".join(one.get("body", b"") for one in self.messages).decode()

    @property
    def names(self) -> list[str]:
        return [event.name for event in read(self.body.splitlines())]

    @property
    def is_answered(self) -> bool:
        return self.messages[-1].get("more_body") is False


async def _never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def _streamed(
    stream: EventStream, client: Client, context: RequestContext | None = None
) -> None:
    scope: dict[str, Any] = {"type": "http", "path": "/api/ask"}
    begun = create_request_context(scope, "one")
    if context:
        begun.cancel_token = context.cancel_token
    await stream(scope, _never, client.send)


def _from(make: Callable[[], Generator[Event, None, None]]) -> EventStream:
    return EventStream(lambda: from_thread(make), _pool(at_once=8), "ann")


def _pool(at_once: int) -> FairPool:
    return FairPool("answers", PoolLimits(at_once=at_once, waiting=0), PoolRecord())


@given(st.text())
def test_whatever_is_said_comes_through_as_one_event(text: str) -> None:
    encoded = _text(text).encoded(7).decode()
    (event,) = read(encoded.split("\n"))
    assert (event.id, event.name, event.data) == (7, "text", {"text": text})


def test_what_a_thread_yields_is_streamed_to_its_end() -> None:
    def make() -> Generator[Event, None, None]:
        yield _text("one")
        yield _text("two")
        yield DONE

    client = Client()
    asyncio.run(_streamed(_from(make), client))
    assert client.names == ["text", "text", "done"]
    assert client.is_answered


def test_a_mistake_in_the_thread_ends_in_an_error(caplog: pytest.LogCaptureFixture) -> None:
    def make() -> Generator[Event, None, None]:
        yield _text("one")
        raise KeyError("a mistake")

    client = Client()
    asyncio.run(_streamed(_from(make), client))
    assert client.names == ["text", "error"]
    assert "a mistake" not in client.body
    assert "a mistake" in caplog.text


def test_an_event_that_cannot_be_sent_ends_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    def make() -> Generator[Event, None, None]:
        yield _text("one")
        yield _text("half a character: \ud83d")
        yield DONE

    client = Client()
    asyncio.run(_streamed(_from(make), client))
    assert client.names == ["text", "error"]
    assert client.is_answered
    assert "could not be encoded" in caplog.text


def test_a_stream_of_another_shape_ends_in_its_own_way() -> None:
    def make() -> Generator[Event, None, None]:
        yield _text("half a character: \ud83d")

    own = Event("error", TextEvent(text="broken"))
    last = LastEvents(broken=own)
    stream = EventStream(lambda: from_thread(make), _pool(at_once=8), "ann", last)
    client = Client()
    asyncio.run(_streamed(stream, client))
    (event,) = read(client.body.splitlines())
    assert event.data == {"text": "broken"}


def test_nothing_is_sent_after_the_last_event() -> None:
    def make() -> Generator[Event, None, None]:
        yield DONE
        yield _text("late")
        yield DONE

    client = Client()
    asyncio.run(_streamed(_from(make), client))
    assert client.names == ["done"]


def test_silence_is_filled_with_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_sent_events, "KEEP_ALIVE", 0.02)

    def make() -> Generator[Event, None, None]:
        time.sleep(0.2)
        yield DONE

    client = Client()
    asyncio.run(_streamed(_from(make), client))
    assert client.body.count(": ping\n\n") >= 2
    assert client.names == ["done"]


def test_a_client_that_goes_away_closes_what_makes_the_events() -> None:
    closed, begun = threading.Event(), threading.Event()
    context = RequestContext("one")

    def make() -> Generator[Event, None, None]:
        try:
            for number in range(1_000_000):
                begun.set()
                yield _text(str(number))
        finally:
            closed.set()

    async def leaves() -> None:
        streaming = asyncio.create_task(_streamed(_from(make), Client(), context))
        await asyncio.to_thread(begun.wait, SOON)
        context.cancel_token.cancel()
        await asyncio.wait_for(streaming, SOON)

    asyncio.run(leaves())
    assert closed.wait(SOON)


def test_a_slow_client_holds_up_what_makes_the_events() -> None:
    """A few are ready, one is being sent and one is being made: never the whole answer."""
    made: list[int] = []

    def make() -> Generator[Event, None, None]:
        for number in range(10_000):
            made.append(number)
            yield _text("x" * 1_000)

    async def slow() -> int:
        context, client = RequestContext("one"), Client(_after_the_headers)
        streaming = asyncio.create_task(_streamed(_from(make), client, context))
        await asyncio.to_thread(_settled, made)
        context.cancel_token.cancel()
        streaming.cancel()
        await asyncio.gather(streaming, return_exceptions=True)
        return len(made)

    assert MOST_WAITING <= asyncio.run(slow()) <= MOST_WAITING + 3


def _settled(made: list[int]) -> None:
    """Wait until no more is made."""
    before = -1
    while not made or len(made) != before:
        before = len(made)
        time.sleep(0.3)


async def _after_the_headers(sent: int) -> None:
    if sent:
        await asyncio.sleep(SOON * 6)


def test_a_client_that_takes_nothing_for_long_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_sent_events, "PATIENCE", 0.05)
    closed = threading.Event()

    def make() -> Generator[Event, None, None]:
        try:
            yield _text("one")
            yield DONE
        finally:
            closed.set()

    async def stalled() -> None:
        await asyncio.wait_for(_streamed(_from(make), Client(_after_the_headers)), SOON)

    asyncio.run(stalled())
    assert closed.wait(SOON)


def test_when_the_server_stops_the_client_is_informed() -> None:
    context = RequestContext("one")

    def make() -> Generator[Event, None, None]:
        yield _text("one")
        context.cancel_token.wait(SOON)
        yield _text("too late")

    async def stops() -> Client:
        client = Client()
        streaming = asyncio.create_task(_streamed(_from(make), client, context))
        while len(client.messages) < 2:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(context.cancel_token.cancel)
        await asyncio.wait_for(streaming, SOON)
        return client

    client = asyncio.run(stops())
    assert client.names == ["text", "error"]
    assert "stopping" in client.body
    assert client.is_answered


def test_too_many_streams_are_asked_to_come_again() -> None:
    async def crowded() -> tuple[Client, Client]:
        pool, waiting = _pool(at_once=1), asyncio.Event()

        async def waits() -> Events:
            await waiting.wait()
            yield DONE

        first, second = Client(), Client()
        streaming = asyncio.create_task(_streamed(EventStream(waits, pool, "ann"), first))
        await asyncio.sleep(0)
        await _streamed(EventStream(waits, pool, "ann"), second)
        waiting.set()
        await streaming
        await _streamed(EventStream(waits, pool, "ann"), Client())  # there is room again
        return first, second

    first, second = asyncio.run(crowded())
    assert first.names == ["done"]
    assert second.messages[0]["status"] == 503
    assert (b"retry-after", b"1") in second.messages[0]["headers"]


def test_a_pipe_reports_its_thread_when_nobody_wants_more() -> None:
    async def closes() -> Iterator[bool]:
        pipe = Pipe(asyncio.get_running_loop())
        before = pipe.put(DONE)
        pipe.close()
        return iter([before, pipe.put(DONE)])

    assert list(asyncio.run(closes())) == [True, False]


def test_a_pipe_gives_up_on_a_client_without_end() -> None:
    async def full() -> bool:
        pipe = Pipe(asyncio.get_running_loop(), patience=0.05)
        for _ in range(MOST_WAITING):
            assert pipe.put(_text("x"))
        return await asyncio.to_thread(pipe.put, _text("x"))

    assert asyncio.run(full()) is False
