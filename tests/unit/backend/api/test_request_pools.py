"""Pools of requests: bounded, fair by asker, and never stuck, whatever happens to those who wait."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.api.problem_details import Problem
from backend.api.request_pools import MOST_FOLLOWERS, FairPool, PoolLimits, RequestPools
from backend.settings import Settings
from indexing.runtime.deadline import CancelToken
from tests.unit.backend.api.conftest import PoolRecord

Result = TypeVar("Result")


@dataclass
class Room:
    """A pool, and requests that hold their slots until they are let go."""

    pool: FairPool
    record: PoolRecord
    begun: list[str] = field(default_factory=list)
    """Askers, in the order of their turns."""
    refused: list[Problem] = field(default_factory=list)
    holding: list[tuple[str, asyncio.Event]] = field(default_factory=list)

    async def ask(self, asker: str, cancel_token: CancelToken | None = None) -> None:
        try:
            async with self.pool.slot(asker, cancel_token or CancelToken()):
                self.begun.append(asker)
                end = asyncio.Event()
                self.holding.append((asker, end))
                await end.wait()
        except Problem as refusal:
            self.refused.append(refusal)

    async def begin(
        self, asker: str, cancel_token: CancelToken | None = None
    ) -> "asyncio.Task[None]":
        """Start a request, and let it go as far as it gets."""
        task = asyncio.create_task(self.ask(asker, cancel_token))
        await settle()
        return task

    async def let_go(self) -> None:
        """End the request that has held its slot for longest."""
        _, end = self.holding.pop(0)
        end.set()
        await settle()

    async def end_all(self) -> None:
        while self.holding:
            await self.let_go()


async def settle() -> None:
    """Let every task go on until all of them wait."""
    for _ in range(20):
        await asyncio.sleep(0)


def in_room(
    test: Callable[[Room], Awaitable[Result]], at_once: int, waiting: int, patience: float = 60.0
) -> Result:
    async def run() -> Result:
        record = PoolRecord()
        limits = PoolLimits(at_once=at_once, waiting=waiting, patience=patience)
        room = Room(FairPool("searches", limits, record), record)
        result = await test(room)
        await room.end_all()
        return result

    return asyncio.run(run())


def test_no_more_run_at_once_than_there_are_slots() -> None:
    async def test(room: Room) -> None:
        for asker in ("ann", "bob", "cem", "dora"):
            await room.begin(asker)
        assert room.begun == ["ann", "bob"]
        await room.let_go()
        assert room.begun == ["ann", "bob", "cem"]
        await room.end_all()
        assert room.begun == ["ann", "bob", "cem", "dora"]
        assert room.record.entered == {"searches": 4}

    in_room(test, at_once=2, waiting=9)


def test_another_asker_does_not_wait_behind_all_requests_of_one() -> None:
    async def test(room: Room) -> None:
        for _ in range(100):
            await room.begin("ann")
        await room.begin("bob")
        assert room.begun == ["ann", "ann", "ann", "bob"]
        await room.begin("cem")
        await room.let_go()
        assert room.begun[-1] == "cem"

    in_room(test, at_once=4, waiting=200)


def test_askers_who_hold_equally_many_take_turns() -> None:
    async def test(room: Room) -> None:
        for asker in ("ann", "ann", "ann", "bob", "bob", "cem"):
            await room.begin(asker)
        await room.end_all()
        assert room.begun == ["ann", "ann", "bob", "cem", "ann", "bob"]

    # With one slot nobody could keep one free for others.
    in_room(test, at_once=1, waiting=9)


def test_a_full_queue_refuses_and_says_when_to_come_again() -> None:
    async def test(room: Room) -> None:
        for _ in range(3):
            await room.begin("ann")
        (refusal,) = room.refused
        assert refusal.problem.status == 503
        assert int(refusal.headers["Retry-After"]) >= 1
        assert refusal.problem.advice == f"Try again in {refusal.headers['Retry-After']} s."
        assert room.record.turned_away == {"searches": 1}

    in_room(test, at_once=1, waiting=1)


def test_in_a_full_queue_the_greediest_asker_makes_room() -> None:
    async def test(room: Room) -> None:
        for _ in range(6):
            await room.begin("ann")
        assert not room.refused
        for number in range(1, 4):
            await room.begin("bob")
            assert len(room.refused) == number
        await room.end_all()
        # Two of five places went to bob; for a third he would have to have more than ann.
        assert Counter(room.begun) == {"ann": 4, "bob": 2}

    in_room(test, at_once=1, waiting=5)


def test_who_has_waited_for_too_long_is_refused() -> None:
    async def test(room: Room) -> None:
        await room.begin("ann")
        await asyncio.wait_for(await room.begin("bob"), 10)
        (refusal,) = room.refused
        assert refusal.problem.status == 503
        await room.begin("cem")

    in_room(test, at_once=1, waiting=1, patience=0.01)


@pytest.mark.parametrize("by", ["token", "task"])
def test_who_goes_away_leaves_its_place_in_the_queue(by: str) -> None:
    async def test(room: Room) -> None:
        await room.begin("ann")
        token = CancelToken()
        gone = await room.begin("bob", token)
        if by == "token":
            await asyncio.to_thread(token.cancel)
        else:
            gone.cancel()
        await asyncio.wait({gone}, timeout=10)
        await room.begin("cem")
        await room.let_go()
        assert room.begun == ["ann", "cem"]

    in_room(test, at_once=1, waiting=1)


def test_a_slot_that_was_given_to_one_who_goes_away_is_given_on() -> None:
    async def test(room: Room) -> None:
        await room.begin("ann")
        gone = await room.begin("bob")
        await room.begin("cem")
        _, end = room.holding.pop(0)
        end.set()
        await asyncio.sleep(0)  # ann leaves, and bob has the slot; he has not run since
        gone.cancel()
        await settle()
        assert room.begun[-1] == "cem"

    in_room(test, at_once=1, waiting=2)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["ask", "end", "cancel"]))))
def test_whatever_happens_slots_are_neither_lost_nor_given_twice(
    steps: list[tuple[str, str]],
) -> None:
    async def test(room: Room) -> None:
        tasks: list[asyncio.Task[None]] = []
        for asker, step in steps:
            if step == "ask":
                tasks.append(await room.begin(asker))
            elif step == "end" and room.holding:
                await room.let_go()
            elif step == "cancel" and tasks:
                tasks.pop(0).cancel()
                await settle()
                running = {id(end) for _, end in room.holding}
                room.holding = [one for one in room.holding if id(one[1]) in running]
        for task in tasks:
            task.cancel()
        await settle()
        # All have gone: as many as there are slots begin again, one below the limit for one asker.
        room.holding.clear()
        room.begun.clear()
        for asker in "xxyy":
            await room.begin(asker)
        assert room.begun == ["x", "x", "y"]

    in_room(test, at_once=3, waiting=4)


def test_without_a_language_model_fewer_answers_run_at_once() -> None:
    has_model = False

    async def begun_of(**settings: object) -> int:
        record = PoolRecord()
        pools = RequestPools.of(Settings.model_validate(settings), record, lambda: has_model)
        room = Room(pools.answers, record)
        for asker in map(str, range(40)):
            await room.begin(asker)
        begun = len(room.begun)
        await room.end_all()
        return begun

    assert asyncio.run(begun_of()) == 2
    has_model = True
    assert asyncio.run(begun_of()) == 32
    assert asyncio.run(begun_of(answers_at_once=3)) == 3


def test_searches_go_before_the_threads_of_answers() -> None:
    def yield_to_searches(pools: RequestPools) -> bool:
        """Whether answers and those who follow them wait."""
        lines = (pools.answers_waiting_line, pools.followers_waiting_line)
        waits = list[bool]()
        for line in lines:
            began = time.monotonic()
            line.wait(0.05)
            waits.append(time.monotonic() - began >= 0.05)
        assert len(set(waits)) == 1
        return waits[0]

    async def search() -> None:
        record = PoolRecord()
        pools = RequestPools.of(Settings(), record, lambda: True)
        searches, answers = Room(pools.searches, record), Room(pools.answers, record)
        await answers.begin("ann")
        assert not yield_to_searches(pools)
        await searches.begin("bob")
        assert yield_to_searches(pools)
        await searches.let_go()
        assert not yield_to_searches(pools)
        await answers.end_all()

    asyncio.run(search())


def test_so_many_follow_answers_at_once_and_no_more() -> None:
    async def follow() -> None:
        record = PoolRecord()
        room = Room(RequestPools.of(Settings(), record, lambda: True).followed_answers, record)
        for number in range(MOST_FOLLOWERS):
            await room.begin(f"person {number % 50}")
        assert len(room.begun) == MOST_FOLLOWERS
        assert room.refused == []
        await room.begin("one more")
        (refusal,) = room.refused
        assert (refusal.problem.status, refusal.headers) == (503, {"Retry-After": "1"})
        await room.end_all()

    asyncio.run(follow())


def test_the_limit_follows_the_model_that_an_admin_sets() -> None:
    async def follow() -> None:
        has_model, record = False, PoolRecord()
        pools = RequestPools.of(Settings.model_validate({}), record, lambda: has_model)
        room = Room(pools.answers, record)
        for asker in map(str, range(5)):
            await room.begin(asker)
        assert len(room.begun) == 2
        has_model = True
        await room.let_go()
        assert len(room.begun) == 5
        await room.end_all()

    asyncio.run(follow())
