"""News of turns and research runs come from other connections of PostgreSQL, again after the connection was lost, and to nobody without end."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from sqlalchemy import make_url, text

from backend.store.chat import turn_listener, turns
from backend.store.chat.turn_listener import TurnListener
from backend.store.chat.turn_news import CHANNEL, send_news
from backend.store.chat.turns import Ending, OpenTurn
from backend.store.database import Database, open_database
from backend.store.research import research_leases, research_runs
from backend.store.research.research_leases import EventPortion, ResearchProgress
from backend.store.research.research_runs import NewResearch
from tests.support.conversations import ELSEWHERE, OWNER, START, begin, store, text_portion
from tests.support.databases import Databases, sqlite_in
from tests.support.server_processes import wait_for

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
SOON = 30.0
LAST = 0
"""Told last by a test that shows what was not told before."""


class _Process:
    """A process that listens, with connections of its own."""

    def __init__(self, url: str) -> None:
        self.database = open_database(url)
        self.heard = SimpleQueue[int | str]()
        self.changes = SimpleQueue[None]()
        self.listener = TurnListener(
            lambda: self.database, self.heard.put, lambda: self.changes.put(None)
        )

    def listen(self) -> None:
        wait_for(self.listener.ensure_listening)

    def hear(self) -> int | str:
        return self.heard.get(timeout=SOON)

    def close(self) -> None:
        self.listener.close(SOON)
        self.database.close()


@pytest.fixture
def url(postgresql: Databases) -> Iterator[str]:
    with postgresql.new() as url:
        yield url


@pytest.fixture
def process(url: str) -> Iterator[_Process]:
    with closing(_Process(url)) as process:
        yield process


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    """Of another process."""
    with closing(open_database(url)) as opened:
        yield opened


def _list_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "turn news"]


def test_what_another_process_stores_of_a_turn_is_told(
    process: _Process, database: Database
) -> None:
    message = begin(database).answer.id
    process.listen()
    store(database, message, text_portion(message, 1, "One "), None, NOW)
    assert process.hear() == message
    store(database, message, None, Ending(message_id=message, status="failed", text=""), NOW)
    assert process.hear() == message
    assert process.heard.empty()


def test_that_a_turn_of_a_dead_process_was_ended_is_told(
    process: _Process, database: Database
) -> None:
    message = begin(database).answer.id
    (found,) = turns.list_open(database)
    assert found == OpenTurn(message, ELSEWHERE, START + turns.LEASE)
    ending = Ending(message_id=message, status="interrupted", text="")
    process.listen()
    assert turns.take_over(
        database, found, lambda last, _: (text_portion(message, last + 1, "."), ending), NOW
    )
    assert process.hear() == message


def test_neither_a_lease_nor_what_was_not_committed_is_told(
    process: _Process, database: Database
) -> None:
    message = begin(database).answer.id
    process.listen()
    store(database, message, None, None, NOW)
    with suppress(ZeroDivisionError), database.transaction() as whole:
        store(whole, message, text_portion(message, 1, "One "), None, NOW)
        raise ZeroDivisionError
    with database.writing() as connection:
        send_news(connection, [LAST])
    assert process.hear() == LAST


def test_nothing_is_told_of_a_turn_that_takes_no_more(
    process: _Process, database: Database
) -> None:
    message = begin(database).answer.id
    ending = Ending(message_id=message, status="failed", text="")
    store(database, message, None, ending, NOW)
    process.listen()
    store(database, message, text_portion(message, 1, "late"), None, NOW)
    with database.writing() as connection:
        send_news(connection, [LAST])
    assert process.hear() == LAST


def test_what_a_research_run_does_is_told(process: _Process, database: Database) -> None:
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
    worked_on, stopped = (research_runs.add(database, new, NOW) for _ in range(2))
    claimed = research_leases.claim(database, worked_on, ELSEWHERE, lambda _: False, NOW)
    assert claimed
    process.listen()
    progress = ResearchProgress(portion=EventPortion(1, 1, '[[1,"state",{},[]]]'))
    research_leases.store(database, claimed.claim, progress, NOW)
    assert process.hear() == worked_on
    research_leases.store(database, claimed.claim, ResearchProgress(), NOW)
    research_runs.stop(
        database, OWNER, stopped, lambda number: f'[[{number},"stopped",{{}},[]]]', NOW
    )
    assert process.hear() == stopped


def test_news_hold_the_id_alone(database: Database, url: str) -> None:
    message = begin(database).answer.id
    address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        connection.execute(f"LISTEN {CHANNEL}")
        portion = text_portion(message, 1, "One ", documents=("wiki:a",))
        store(database, message, portion, None, NOW)
        (news,) = connection.notifies(timeout=SOON, stop_after=1)
    assert news.payload == str(message)


def test_many_requests_share_one_connection(process: _Process, database: Database) -> None:
    threads = [threading.Thread(target=process.listener.ensure_listening) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(SOON)
    process.listen()
    assert len(_list_threads()) == 1
    assert _count_listening(database) == 1
    # It takes none of those that requests share.
    assert process.database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def _count_listening(database: Database) -> int:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"
    with database.reading() as connection:
        return connection.scalar(text(query)) or 0


def test_without_a_request_the_thread_ends_and_another_one_begins_with_the_next(
    process: _Process, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_listener, "_LOOK", 0.01)
    process.listen()
    monkeypatch.setattr(turn_listener, "IDLE_SECONDS", 0.0)
    wait_for(lambda: not _list_threads())
    wait_for(lambda: _count_listening(database) == 0)
    monkeypatch.setattr(turn_listener, "IDLE_SECONDS", SOON)
    assert not process.listener.ensure_listening()
    process.listen()
    with database.writing() as connection:
        send_news(connection, [LAST])
    assert process.hear() == LAST


def test_the_thread_ends_with_the_process(process: _Process, database: Database) -> None:
    process.listen()
    process.listener.close(SOON)
    assert not _list_threads()
    wait_for(lambda: _count_listening(database) == 0)
    assert not process.listener.ensure_listening()
    assert not _list_threads()


def test_the_process_does_not_wait_until_a_lost_connection_is_tried_again(
    process: _Process, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_listener, "FIRST_PAUSE", 600.0)
    monkeypatch.setattr(turn_listener, "LONGEST_PAUSE", 600.0)
    process.listen()
    _cut_off(database)
    wait_for(lambda: not process.listener.ensure_listening())
    process.listener.close(SOON)
    assert not _list_threads()


def _cut_off(database: Database) -> None:
    """End all connections that listen, as a server does that is stopped."""
    query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"
    with database.writing() as connection:
        connection.execute(text(query))


def test_a_lost_connection_is_tried_again_and_logged_once(
    process: _Process,
    database: Database,
    postgresql: Databases,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO, "quarry.turns")
    monkeypatch.setattr(turn_listener, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(turn_listener, "LONGEST_PAUSE", 0.02)
    attempts = _count_attempts(process, monkeypatch)
    process.listen()
    assert process.changes.get(timeout=SOON) is None
    with _closed_to_new_connections(postgresql, database):
        _cut_off(database)
        wait_for(lambda: not process.listener.ensure_listening())
        wait_for(lambda: len(attempts) >= 5)
        assert not process.listener.ensure_listening()
    process.listen()
    # What was stored meanwhile is told by none, so that all are to look: when news come no more, and when they come again.
    assert [process.changes.get(timeout=SOON) for _ in range(2)] == [None, None]
    with database.writing() as connection:
        send_news(connection, [LAST])
    assert process.hear() == LAST
    levels = [one.levelname for one in caplog.records if one.name == "quarry.turns"]
    assert levels == ["WARNING", "INFO"]


def _count_attempts(process: _Process, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    attempts = list[None]()
    connect: Callable[..., object] = process.listener._connect

    def count_and_connect() -> object:
        attempts.append(None)
        return connect()

    monkeypatch.setattr(process.listener, "_connect", count_and_connect)
    return attempts


@contextmanager
def _closed_to_new_connections(databases: Databases, database: Database) -> Iterator[None]:
    """Let those that are open go on."""
    server = make_url(databases.server).set(drivername="postgresql")
    name = Identifier(database.engine.url.database or "")
    with closing(
        psycopg.connect(server.render_as_string(hide_password=False), autocommit=True)
    ) as connection:
        for_new = SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}")
        connection.execute(for_new.format(name, SQL("false")))
        try:
            yield
        finally:
            connection.execute(for_new.format(name, SQL("true")))


@pytest.mark.parametrize(
    ("lost", "seconds"), [(0, 1.0), (1, 2.0), (2, 4.0), (5, 30.0), (10_000, 30.0)]
)
def test_the_pauses_grow(lost: int, seconds: float) -> None:
    assert turn_listener.choose_pause(lost) == seconds


def test_sqlite_has_no_news(tmp_path: Path) -> None:
    with closing(_Process(sqlite_in(tmp_path))) as process:
        message = begin(process.database).answer.id
        assert not process.listener.ensure_listening()
        store(process.database, message, text_portion(message, 1, "One "), None, NOW)
        assert not process.listener.ensure_listening()
        assert not _list_threads()
