"""Who follows what another process writes is woken by its news over PostgreSQL, and looks by itself where none come."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import ExitStack, aclosing, closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import pytest
from sqlalchemy import text

from backend.api.conversation_turns import ConversationTurns
from backend.api.followed_answer import Follower, follow_events
from backend.api.metrics_collector import Metrics
from backend.api.request_pools import RequestPools
from backend.chat.rights_watch import EVERY
from backend.conversations import followed_turn
from backend.conversations.followed_turn import AnswerPlace, FollowedAnswer, TurnFollower
from backend.conversations.turn_events import NumberedEvent
from backend.research.runs import followed_research
from backend.research.runs.followed_research import ResearchFollower
from backend.settings import Settings
from backend.store.chat import turn_listener
from backend.store.chat.messages import Message
from backend.store.chat.turns import Ending
from backend.store.database import Database, open_database
from backend.store.research import research_leases, research_runs
from backend.store.research.research_leases import EventPortion, ResearchProgress
from backend.store.research.research_runs import NewResearch
from connectors.access import Readers
from indexing.runtime.deadline import CancelToken
from tests.support.conversations import (
    ELSEWHERE,
    OWNER,
    begin,
    own_no_memories,
    store,
    text_portion,
)
from tests.support.databases import Databases, sqlite_in
from tests.support.server_processes import wait_for
from tests.unit.backend.conversations.test_turn_runner import Shelf

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
SOON = 30.0
NEVER = 600.0


class _Unobserved(Metrics):
    def __init__(self) -> None:
        """Counts nothing."""


class _Server:
    """A process that serves followers, with connections of its own."""

    def __init__(self, url: str) -> None:
        self.database = open_database(url)
        metrics = _Unobserved()
        pools = RequestPools.of(Settings(), metrics, lambda: True)
        self.turns = ConversationTurns(lambda: self.database, pools, metrics)
        self._hear_others = self.turns.news.hear_others
        self.turns.news.hear_others = self._hear_and_note
        self.waits_for_news = False
        """Whether the follower that asked last waits as long as it may while news come."""

    def _hear_and_note(self) -> bool:
        self.waits_for_news = self._hear_others()
        return self.waits_for_news

    async def until_waiting(self) -> None:
        await _until(lambda: self.waits_for_news)

    async def until_lost(self) -> None:
        await _until(lambda: not self._hear_others())

    def make_follower(self, message: Message) -> TurnFollower:
        place = AnswerPlace(OWNER, message.conversation_id)
        return TurnFollower(
            database=self.database,
            answer=FollowedAnswer(message.id, lambda: place, is_own=True),
            index=Shelf(),  # type: ignore[arg-type]
            readers_now=lambda: Readers.of("public"),
            own_memories=own_no_memories,
            seconds=SOON,
            news=self.turns.news,
            is_announced=lambda: self.turns.announces(message.id),
            cancel_token=CancelToken(),
        )

    def make_research_follower(self, run_id: str) -> ResearchFollower:
        return ResearchFollower(
            database=self.database,
            run_id=run_id,
            owner=OWNER,
            index=Shelf(),  # type: ignore[arg-type]
            readers_now=lambda: Readers.of("public"),
            own_memories=own_no_memories,
            seconds=SOON,
            news=self.turns.news,
            cancel_token=CancelToken(),
        )

    def follow(self, follower: Follower) -> AsyncGenerator[NumberedEvent, None]:
        return follow_events(follower, 0, self.turns.followers)

    def close(self) -> None:
        self.turns.stop(SOON)
        self.database.close()


@pytest.fixture
def url(postgresql: Databases) -> Iterator[str]:
    with postgresql.new() as url:
        yield url


@pytest.fixture
def server(url: str) -> Iterator[_Server]:
    with closing(_Server(url)) as server:
        yield server


@pytest.fixture
def elsewhere(url: str) -> Iterator[Database]:
    """The database of the process that writes."""
    with closing(open_database(url)) as opened:
        yield opened


@pytest.fixture
def no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """No follower looks by itself: only news wake it."""
    for module in (followed_turn, followed_research):
        monkeypatch.setattr(module, "EVERY", NEVER)
        monkeypatch.setattr(module, "POLL", NEVER)


def _run(script: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(SOON):
            await script()

    asyncio.run(run())


async def _until(happened: Callable[[], bool]) -> None:
    while not happened():
        await asyncio.sleep(0.01)


def _end_turn(database: Database, message: Message) -> None:
    ending = Ending(message_id=message.id, status="stopped", text="One two.")
    store(database, message.id, text_portion(message.id, 2, "two."), ending, NOW)


@pytest.mark.usefixtures("no_looks")
def test_a_portion_of_another_process_wakes_its_followers(
    server: _Server, elsewhere: Database
) -> None:
    answer = begin(elsewhere).answer

    async def script() -> None:
        async with aclosing(server.follow(server.make_follower(answer))) as events:
            first = asyncio.ensure_future(anext(events))
            await server.until_waiting()
            store(elsewhere, answer.id, text_portion(answer.id, 1, "One "), None, NOW)
            assert (await first).data == {"text": "One "}
            second = asyncio.ensure_future(anext(events))
            _end_turn(elsewhere, answer)
            assert (await second).data == {"text": "two."}
            with pytest.raises(StopAsyncIteration):
                await anext(events)

    _run(script)


@pytest.mark.usefixtures("no_looks")
def test_what_was_stored_before_news_come_is_missed_by_nobody(
    server: _Server, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listener connects once the portion is stored, whose news it cannot hear."""
    answer = begin(elsewhere).answer
    is_stored = threading.Event()
    connect = turn_listener.TurnListener._connect

    def connect_later(listener: turn_listener.TurnListener) -> object:
        assert is_stored.wait(SOON)
        return connect(listener)

    monkeypatch.setattr(turn_listener.TurnListener, "_connect", connect_later)

    async def script() -> None:
        async with aclosing(server.follow(server.make_follower(answer))) as events:
            first = asyncio.ensure_future(anext(events))
            await _until(_is_connecting)
            store(elsewhere, answer.id, text_portion(answer.id, 1, "One "), None, NOW)
            is_stored.set()
            assert (await first).data == {"text": "One "}

    _run(script)


def _is_connecting() -> bool:
    return any(one.name == "turn news" for one in threading.enumerate())


def test_followers_look_while_the_connection_is_lost_and_are_woken_again_afterwards(
    server: _Server, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_turn, "EVERY", NEVER)
    monkeypatch.setattr(turn_listener, "FIRST_PAUSE", NEVER)
    monkeypatch.setattr(turn_listener, "LONGEST_PAUSE", NEVER)
    answer = begin(elsewhere).answer

    async def script() -> None:
        async with aclosing(server.follow(server.make_follower(answer))) as events:
            first = asyncio.ensure_future(anext(events))
            await server.until_waiting()
            _cut_off(elsewhere)
            await server.until_lost()
            store(elsewhere, answer.id, text_portion(answer.id, 1, "One "), None, NOW)
            # It was about to wait for as long as news come.
            assert (await first).data == {"text": "One "}
            second = asyncio.ensure_future(anext(events))
            _end_turn(elsewhere, answer)
            assert (await second).data == {"text": "two."}

    _run(script)


def _cut_off(database: Database) -> None:
    """End the connections that listen, as a server does that is stopped."""
    query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"
    with database.writing() as connection:
        connection.execute(text(query))


@pytest.mark.usefixtures("no_looks")
def test_what_another_process_does_for_research_wakes_its_followers(
    server: _Server, elsewhere: Database
) -> None:
    new = NewResearch(
        owner=OWNER,
        acting_as=("public",),
        conversation_id=None,
        project_id=None,
        question="How long is leave?",
        confirms_plan=True,
        record="{}",
        history_document_ids=[],
    )
    run_id = research_runs.add(elsewhere, new, NOW)
    claimed = research_leases.claim(
        elsewhere, run_id, ELSEWHERE, lambda _: False, datetime.now(UTC)
    )
    assert claimed
    portion = EventPortion(1, 1, '[[1,"state",{},[]]]')

    async def script() -> None:
        follower = server.make_research_follower(run_id)
        async with aclosing(server.follow(follower)) as events:
            first = asyncio.ensure_future(anext(events))
            await server.until_waiting()
            research_leases.store(
                elsewhere, claimed.claim, ResearchProgress(portion=portion), datetime.now(UTC)
            )
            assert (await first).number == 1

    _run(script)


def test_a_turn_of_this_process_takes_no_connection(server: _Server, elsewhere: Database) -> None:
    answer = begin(elsewhere).answer
    follower = server.make_follower(answer)
    assert not _is_connecting()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(server.turns, "announces", lambda _: True)
        assert follower.pause == EVERY
    assert not _is_connecting()
    assert follower.pause == followed_turn.POLL
    assert _is_connecting()
    server.turns.stop(SOON)
    assert not _is_connecting()


def test_who_is_told_by_this_process_is_not_woken_twice(
    server: _Server, elsewhere: Database
) -> None:
    """Its own portions come back over the connection."""
    own, other, last = (begin(elsewhere, minute=minute).answer for minute in range(3))
    woken, heard = list[int](), SimpleQueue[int]()
    news = server.turns.news
    wait_for(news.hear_others)
    with ExitStack() as stack:
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        patched.setattr(server.turns, "announces", lambda one: one == own.id)
        _listen(stack, server, other, heard.put)
        store(elsewhere, other.id, text_portion(other.id, 1, "One "), None, NOW)
        assert heard.get(timeout=SOON) == other.id
        # By now all were woken that are woken as soon as news come.
        _listen(stack, server, own, woken.append)
        _listen(stack, server, last, heard.put)
        for each in (own, last):
            store(elsewhere, each.id, text_portion(each.id, 1, "One "), None, NOW)
        wait_for(lambda: heard.get(timeout=SOON) == last.id)
    assert not woken


def _listen(
    stack: ExitStack, server: _Server, message: Message, hear: Callable[[int], object]
) -> None:
    stack.enter_context(server.turns.news.listen(message.id, partial(hear, message.id)))


def test_on_sqlite_followers_look_by_themselves(tmp_path: Path) -> None:
    with closing(_Server(sqlite_in(tmp_path))) as server:
        answer = begin(server.database).answer
        follower = server.make_follower(answer)

        async def script() -> None:
            async with aclosing(server.follow(follower)) as events:
                first = asyncio.ensure_future(anext(events))
                await asyncio.sleep(0)
                store(server.database, answer.id, text_portion(answer.id, 1, "One "), None, NOW)
                assert (await first).data == {"text": "One "}

        _run(script)
        assert follower.pause == followed_turn.POLL
        assert not _is_connecting()
