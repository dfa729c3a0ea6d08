"""Many follow answers at once: each is woken by news, and takes no thread while it waits."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backend.api.followed_answer import follow_answer
from backend.api.server_sent_events import SentEvents, until_last
from backend.conversations.followed_turn import AnswerPlace, FollowedAnswer, TurnFollower
from backend.conversations.turn_notifications import TurnNotifications
from backend.store.chat.turns import Ending
from backend.store.database import Database, open_database
from connectors.access import Readers
from indexing.runtime.deadline import CancelToken
from tests.support.conversations import OWNER, begin, own_no_memories, store, text_portion
from tests.support.databases import sqlite_in
from tests.unit.backend.conversations.test_turn_runner import Shelf

FOLLOWERS = 100
THREADS = 2


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(sqlite_in(tmp_path))) as opened:
        yield opened


def make_follower(
    database: Database, answer: FollowedAnswer, news: TurnNotifications
) -> TurnFollower:
    return TurnFollower(
        database=database,
        answer=answer,
        index=Shelf(),  # type: ignore[arg-type]
        readers_now=lambda: Readers.of("public"),
        own_memories=own_no_memories,
        seconds=30.0,
        news=news,
        is_announced=lambda: True,
        cancel_token=CancelToken(),
    )


def test_a_follower_that_claims_to_have_more_than_there_is_is_sent_nothing(
    database: Database,
) -> None:
    begun = begin(database)
    message, place = begun.answer.id, AnswerPlace(OWNER, begun.answer.conversation_id)
    answer = FollowedAnswer(message, lambda: place, is_own=True)
    ending = Ending(message_id=message, status="stopped", text="One ")
    store(database, message, text_portion(message, 1, "One "), ending, datetime.now(UTC))

    async def follow(after: int) -> list[bytes]:
        with ThreadPoolExecutor(1) as threads:
            follower = make_follower(database, answer, TurnNotifications())
            events = until_last(follow_answer(follower, after, threads))
            return [event.encoded(0) async for event in events]

    assert asyncio.run(follow(999)) == [b""]


def test_followers_wait_without_a_thread_and_are_woken(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None of them looks by itself.
    monkeypatch.setattr("backend.conversations.followed_turn.EVERY", 600.0)
    begun, news = begin(database), TurnNotifications()
    message = begun.answer.id
    place = AnswerPlace(OWNER, begun.answer.conversation_id)

    def follower() -> TurnFollower:
        return make_follower(database, FollowedAnswer(message, lambda: place, is_own=True), news)

    async def listen(events: SentEvents) -> list[str]:
        return [event.encoded(0).split(b"\n")[0].decode() async for event in events]

    async def run() -> list[list[str]]:
        before = threading.active_count()
        with ThreadPoolExecutor(THREADS) as threads:
            following = [
                asyncio.create_task(listen(follow_answer(follower(), 0, threads)))
                for _ in range(FOLLOWERS)
            ]
            while len(news._listening.get(message, ())) < FOLLOWERS or threads._work_queue.qsize():
                await asyncio.sleep(0.01)
            assert threading.active_count() - before <= THREADS
            portion = text_portion(message, 1, "One ")
            ending = Ending(message_id=message, status="stopped", text="One ")
            store(database, message, portion, ending, datetime.now(UTC))
            while not all(task.done() for task in following):
                # Whoever had not begun to wait would miss the first one.
                news.announce(message)
                await asyncio.sleep(0.02)
        return [task.result() for task in following]

    heard = asyncio.run(run())
    assert len(heard) == FOLLOWERS
    assert all(one[0] == "event: text" for one in heard)
