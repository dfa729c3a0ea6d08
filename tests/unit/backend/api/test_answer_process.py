"""The server's side of the process of answers: when it is started and used, what it is told, and what becomes of its turns when it dies."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from backend.api import answer_process
from backend.api.answer_process import (
    AnswerProcess,
    BeginTurn,
    EndProcess,
    ProcessReady,
    Report,
    SlotRefused,
    SlotTaken,
    StopTurn,
    TurnStored,
    WebCacheLookup,
)
from backend.api.conversation_turns import AskerTurns
from backend.api.metrics_collector import Metrics
from backend.api.server_cores import ServerCores
from backend.api.turn_maker import TurnAsker
from backend.chat.turn_settings import AssistantSettings
from backend.conversations.new_turn import LocalTurns, NewTurn
from backend.conversations.turn_runner import TurnRunner
from backend.store.chat.messages import Message
from backend.store.database import open_database
from backend.store.documents import batches
from backend.store.owner import ConversationOwner
from backend.store.sync import run_transitions, runs, sources
from backend.store.sync.runs import Process
from backend.sync.run_lease import is_dead, is_gone, this_process
from connectors.access import Readers
from connectors.connector import Deletion
from tests.support.databases import sqlite_in
from tests.support.server_processes import wait_for

SOON = 10.0
ASKER = TurnAsker(ConversationOwner(7), Readers.of("group:sales"), "person:7", "zh")


class _Played(BaseProcess):
    """A process as the server sees it, played by the test at the other end of the pipe."""

    exitcode = 0
    pid = os.getpid()

    def __init__(self, theirs: Connection) -> None:
        self.connection = Connection(os.dup(theirs.fileno()))

    def join(self, timeout: float | None = None) -> None:
        del timeout

    def receive(self) -> object:
        assert self.connection.poll(SOON)
        return self.connection.recv()

    def report(self, *reports: Report) -> None:
        for one in reports:
            self.connection.send(one)

    def die(self, code: int) -> None:
        self.exitcode = code
        self.connection.close()

    def kill(self) -> None:
        self.die(-9)


class _Counted(Metrics):
    """Notes what is counted."""

    def __init__(self) -> None:
        self.noted: list[tuple[object, ...]] = []

    def waited(self, pool: str, seconds: float) -> None:
        self.noted.append((pool, seconds))

    def refused(self, pool: str) -> None:
        self.noted.append((pool,))

    def looked_up_in_web_cache(self, kind: str, outcome: str) -> None:
        self.noted.append((kind, outcome))


class _NotedCores(ServerCores):
    """Notes whether the server is confined."""

    are_confined = False

    def confine(self) -> None:
        self.are_confined = True

    def release(self) -> None:
        self.are_confined = False


class _World:
    def __init__(self) -> None:
        self.started: list[_Played] = []
        self.stored: list[int] = []
        self.metrics = _Counted()
        self.process = self.make()

    def make(self, **options: Any) -> AnswerProcess:
        return AnswerProcess(self.start, self.metrics, self.stored.append, _NotedCores(), **options)

    def start(self, theirs: Connection) -> BaseProcess:
        self.started.append(_Played(theirs))
        return self.started[-1]

    def choose(self) -> Process:
        """Return the process for a turn beside two others, once it is started."""
        wait_for(lambda: self.process.choose_holder(2) is not None)
        holder = self.process.choose_holder(2)
        assert holder is not None
        return holder

    def begin(self, message_id: int) -> None:
        self.process.begin(self.choose(), BeginTurn(ASKER, _make_turn(message_id)))


@pytest.fixture
def world() -> Iterator[_World]:
    world = _World()
    yield world
    for each in world.started:
        if not each.connection.closed:
            each.die(0)


def _make_turn(message_id: int) -> NewTurn:
    question = Message(
        id=message_id - 1,
        conversation_id="c",
        parent_id=None,
        role="user",
        text="Wie lange?",
        filters={"sources": ["wiki"]},
        search_scope="files",
        mode={"tools": ["search"]},
        created_at=datetime(2026, 11, 28, tzinfo=UTC),
        status=None,
        answer=None,
        problem=None,
        document_ids=(),
        losses=(),
    )
    return NewTurn(message_id, question, AssistantSettings())


def test_it_is_started_by_a_turn_beside_another_one(world: _World) -> None:
    assert world.process.choose_holder(0) is None
    assert not world.started
    assert world.process.choose_holder(1) is None
    wait_for(lambda: len(world.started) == 1)


def test_few_turns_run_in_the_server_until_it_is_ready(world: _World) -> None:
    assert world.process.choose_holder(1) is None
    holder = world.choose()
    assert holder.number == os.getpid()
    assert world.process.choose_holder(1) is None
    world.started[0].report(ProcessReady())
    wait_for(lambda: world.process.choose_holder(0) == holder)
    assert len(world.started) == 1


def test_a_turn_beside_two_others_waits_until_it_is_started(world: _World) -> None:
    def start_late(theirs: Connection) -> BaseProcess:
        time.sleep(0.1)
        return world.start(theirs)

    world.process = AnswerProcess(start_late, world.metrics, world.stored.append, _NotedCores())
    assert world.process.choose_holder(2) is not None


def test_it_is_told_all_of_a_turn_and_when_to_stop_it(world: _World) -> None:
    world.begin(12)
    assert world.started[0].receive() == BeginTurn(ASKER, _make_turn(12))
    world.process.stop(13)
    world.process.stop(12)
    assert world.started[0].receive() == StopTurn(12)


def test_of_one_that_is_silent_for_long_it_is_looked_whether_it_has_died(
    world: _World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.begin(12)
    assert world.process.announces(12)
    monkeypatch.setattr(answer_process, "SILENT_SECONDS", 0.0)
    assert not world.process.announces(12)


def test_a_turn_runs_there_until_its_end_is_stored(world: _World) -> None:
    world.begin(12)
    assert world.process.announces(12)
    assert not world.process.announces(13)
    world.started[0].report(TurnStored(12, is_running=True), TurnStored(12, is_running=False))
    wait_for(lambda: world.stored == [12, 12])
    assert not world.process.announces(12)


def test_what_happens_there_is_counted_here(world: _World) -> None:
    world.begin(12)
    world.started[0].report(
        SlotTaken("answers", 0.5), SlotRefused("answers"), WebCacheLookup("page", "hit")
    )
    wait_for(lambda: len(world.metrics.noted) == 3)
    assert world.metrics.noted == [("answers", 0.5), ("answers",), ("page", "hit")]


def test_followers_of_its_turns_look_when_it_dies(world: _World) -> None:
    world.begin(12)
    world.begin(14)
    world.started[0].die(-9)
    wait_for(lambda: sorted(world.stored) == [12, 14])
    assert not world.process.announces(12)


def test_one_that_died_is_started_again_after_a_while(
    world: _World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.begin(12)
    world.started[0].die(1)
    wait_for(lambda: world.stored == [12])
    assert world.process.choose_holder(5) is None
    assert len(world.started) == 1
    monkeypatch.setattr(answer_process, "RESTART_SECONDS", 0.0)
    world.process = world.make()
    world.begin(14)
    world.started[1].die(1)
    wait_for(lambda: world.stored == [12, 14])
    world.choose()
    assert len(world.started) == 3


def test_one_that_cannot_be_started_costs_no_question(world: _World) -> None:
    def fail(theirs: Connection) -> BaseProcess:
        del theirs
        raise OSError("Resource temporarily unavailable")

    process = AnswerProcess(fail, world.metrics, world.stored.append, _NotedCores())
    assert process.choose_holder(5) is None
    process.join(SOON)
    assert process.choose_holder(5) is None


def test_a_turn_that_it_cannot_be_told_is_not_said_to_run(world: _World) -> None:
    holder = world.choose()
    world.started[0].die(-9)
    wait_for(lambda: world.process.choose_holder(2) is None)
    world.process.begin(holder, BeginTurn(ASKER, _make_turn(12)))
    assert not world.process.announces(12)


def test_one_that_does_not_end_is_killed(world: _World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_process, "_LOOK", 0.01)
    monkeypatch.setattr(answer_process, "END_SECONDS", 0.05)
    world.begin(12)
    world.process.end()
    wait_for(lambda: world.stored == [12])
    assert world.started[0].exitcode == -9


def test_without_turns_it_ends_after_a_while(
    world: _World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_process, "_LOOK", 0.01)
    world.process = world.make(idle_seconds=0.05)
    world.begin(12)
    process = world.started[0]
    assert isinstance(process.receive(), BeginTurn)
    process.report(ProcessReady())
    assert not process.connection.poll(0.3)
    process.report(TurnStored(12, is_running=False))
    assert process.receive() == EndProcess()
    process.die(0)
    wait_for(lambda: world.process.choose_holder(2) is not None)
    assert len(world.started) == 2


def test_the_server_ends_it_and_starts_none_any_more(world: _World) -> None:
    world.begin(12)
    world.process.end()
    assert isinstance(world.started[0].receive(), BeginTurn)
    assert world.started[0].receive() == EndProcess()
    assert world.process.choose_holder(5) is None
    assert len(world.started) == 1


def test_turns_begun_at_once_start_it_once(world: _World) -> None:
    threads = [threading.Thread(target=world.process.choose_holder, args=(3,)) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(SOON)
    world.choose()
    assert len(world.started) == 1


def test_the_server_keeps_to_one_core_while_it_starts_or_runs_turns(world: _World) -> None:
    cores = _NotedCores()
    world.process = AnswerProcess(world.start, world.metrics, world.stored.append, cores)
    world.choose()
    assert cores.are_confined
    world.started[0].report(ProcessReady())
    wait_for(lambda: not cores.are_confined)
    world.begin(12)
    world.begin(14)
    world.started[0].report(TurnStored(12, is_running=False))
    wait_for(lambda: not world.process.announces(12))
    assert cores.are_confined
    world.started[0].report(TurnStored(14, is_running=False))
    wait_for(lambda: not cores.are_confined)
    world.begin(16)
    assert cores.are_confined
    world.started[0].die(-9)
    wait_for(lambda: not cores.are_confined)


def test_beside_one_that_is_silent_for_long_the_server_has_all_cores(
    world: _World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_process, "_LOOK", 0.01)
    monkeypatch.setattr(answer_process, "SILENT_SECONDS", 0.2)
    cores = _NotedCores()
    world.process = AnswerProcess(world.start, world.metrics, world.stored.append, cores)
    world.begin(12)
    assert cores.are_confined
    wait_for(lambda: not cores.are_confined)


class _Busy(TurnRunner):
    """Of a server that writes several answers already."""

    def __init__(self) -> None:
        pass

    def count_running(self) -> int:
        return 5


def test_turns_run_in_the_server_while_documents_are_indexed(world: _World, tmp_path: Path) -> None:
    with closing(open_database(sqlite_in(tmp_path))) as database:
        sources.add(database, "wiki", "folder", {"path": "/wiki"})
        local = LocalTurns(_Busy(), lambda _: pytest.fail("nothing is begun"))
        turns = AskerTurns(ASKER, local, database, world.process)
        run = run_transitions.begin(database, "wiki", "incremental", this_process(), is_gone)
        runs.enter_stage(database, run, "indexing")
        batches.save(database, run, [Deletion("wiki:a")], None)
        assert turns.choose_process() is local
        assert not world.started
        claimed = batches.claim(database, this_process(), is_dead)
        assert claimed is not None
        wait_for(lambda: turns.choose_process().holder.number == os.getpid())
        wait_for(lambda: turns.choose_process() is not local)
