"""What conversations have found on the web: whose it is, how much is kept, and for how long."""

import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from backend.store import web_cache
from backend.store.chat import conversations
from backend.store.database import Database, open_database
from backend.store.owner import ConversationOwner
from backend.store.schema.web_cache_tables import web_cache_entries
from backend.store.web_cache import SESSION, CachedSession, CacheLimits, EntryKey
from tests.support.conversations import OWNER, START, begin
from tests.support.databases import Databases
from tests.support.races import race

LIMITS = CacheLimits(3, 100)
SECOND = timedelta(seconds=1)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def begin_session(database: Database) -> CachedSession:
    return CachedSession(OWNER, begin(database).answer.conversation_id)


def search(key: str) -> EntryKey:
    return EntryKey("search", key)


def put(
    database: Database,
    session: CachedSession,
    key: str,
    second: int = 0,
    content: bytes = b"found",
    limits: CacheLimits = LIMITS,
) -> None:
    at = START + second * SECOND
    web_cache.put(database, session, search(key), content, limits, at)


def kept(database: Database, session: CachedSession, now: datetime = START) -> str:
    """The keys of the searches that are found, of those of one letter."""
    keys = "abcdefgh"
    return "".join(k for k in keys if web_cache.get(database, session, search(k), now) is not None)


def count(database: Database) -> int:
    with database.reading() as connection:
        return connection.scalar(select(func.count()).select_from(web_cache_entries)) or 0


def test_what_is_put_is_found_under_its_kind_and_key_until_it_is_put_anew(
    database: Database,
) -> None:
    session = begin_session(database)
    put(database, session, "a", content=b"\0first")
    assert web_cache.get(database, session, search("a"), START) == b"\0first"
    assert web_cache.get(database, session, EntryKey("page", "a"), START) is None
    assert web_cache.get(database, session, search("b"), START) is None
    put(database, session, "a", content=b"second")
    assert web_cache.get(database, session, search("a"), START) == b"second"


def test_what_was_not_used_for_longest_leaves_first(database: Database) -> None:
    session = begin_session(database)
    for second, key in enumerate("abc"):
        put(database, session, key, second)
    web_cache.mark_used(database, session, search("a"), START + 10 * SECOND)
    put(database, session, "d", 11)
    assert kept(database, session) == "acd"
    put(database, session, "e", 12)
    assert kept(database, session) == "ade"


def test_limits_count_bytes_and_each_kind_and_conversation_apart(database: Database) -> None:
    session, other = begin_session(database), begin_session(database)
    put(database, other, "a")
    web_cache.put(database, session, EntryKey("page", "p"), b"x" * 90, LIMITS, START)
    put(database, session, "a", 0, b"x" * 60)
    put(database, session, "b", 1, b"x" * 40)
    assert kept(database, session) == "ab"
    put(database, session, "c", 2, b"x" * 41)
    assert kept(database, session) == "bc"
    put(database, session, "d", 3, b"x" * 101)
    assert kept(database, session) == "bc"
    assert kept(database, other) == "a"
    assert web_cache.get(database, session, EntryKey("page", "p"), START) is not None


def test_nothing_of_another_person_is_found_kept_or_renewed(database: Database) -> None:
    session = begin_session(database)
    stranger = CachedSession(ConversationOwner(7), session.conversation_id)
    missing = CachedSession(OWNER, "no such conversation")
    put(database, session, "a")
    for one in (stranger, missing):
        assert kept(database, one) == ""
        put(database, one, "b")
        web_cache.mark_used(database, one, search("a"), START)
        web_cache.touch(database, one, START + SESSION - SECOND)
    assert kept(database, session) == "a"
    assert kept(database, session, START + SESSION) == ""
    assert count(database) == 1


def test_a_session_ends_when_an_hour_has_passed_without_a_turn(database: Database) -> None:
    session = begin_session(database)
    put(database, session, "a")
    almost = START + SESSION - SECOND
    assert kept(database, session, almost) == "a"
    web_cache.touch(database, session, almost)
    assert kept(database, session, almost + SESSION - SECOND) == "a"
    assert kept(database, session, almost + SESSION) == ""
    web_cache.touch(database, session, almost + SESSION)
    assert kept(database, session, almost) == ""
    assert count(database) == 0


def test_any_turn_forgets_the_sessions_that_have_ended(database: Database) -> None:
    ended, running = begin_session(database), begin_session(database)
    put(database, ended, "a")
    put(database, running, "a", 10)
    web_cache.touch(database, running, START + SESSION)
    assert count(database) == 1
    assert kept(database, running, START + SESSION) == "a"


def test_a_conversation_takes_its_cache_along(database: Database) -> None:
    session = begin_session(database)
    put(database, session, "a")
    conversations.remove(database, OWNER, session.conversation_id)
    assert count(database) == 0
    put(database, session, "b")
    assert count(database) == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=16))
def test_it_holds_what_a_list_of_the_last_ones_holds(
    database: Database, steps: list[tuple[str, bool]]
) -> None:
    session = begin_session(database)
    last: list[str] = []
    for second, (key, putting) in enumerate(steps):
        if putting or key in last:
            last = [*(one for one in last if one != key), key][-LIMITS.entries :]
        if putting:
            put(database, session, key, second)
        else:
            web_cache.mark_used(database, session, search(key), START + second * SECOND)
    assert kept(database, session) == "".join(sorted(last))


def test_two_that_put_at_once_keep_no_more_than_one_would(database: Database) -> None:
    session = begin_session(database)
    for second, key in enumerate("ab"):
        put(database, session, key, second)
    race(
        database,
        lambda opened: put(opened, session, "c", 2),
        lambda: put(database, session, "d", 3),
    )
    assert kept(database, session) == "bcd"


def fill(url: str, conversation_id: str, first: int) -> None:
    """Put twenty entries, as one of several processes."""
    session = CachedSession(OWNER, conversation_id)
    with closing(open_database(url)) as database:
        for number in range(first, first + 20):
            put(database, session, f"{number}", number)
            web_cache.touch(database, session, START)


def test_several_threads_keep_no_more_than_one_would(database: Database, database_url: str) -> None:
    session = begin_session(database)
    threads = [
        threading.Thread(target=fill, args=(database_url, session.conversation_id, 100 * n))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert count(database) == LIMITS.entries


@pytest.mark.soak("slow")
def test_several_processes_share_the_cache_of_a_conversation(
    database: Database, database_url: str
) -> None:
    session = begin_session(database)
    spawning = multiprocessing.get_context("spawn")
    processes = [
        spawning.Process(
            target=fill, args=(database_url, session.conversation_id, 100 * n), daemon=True
        )
        for n in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert count(database) == LIMITS.entries
    assert web_cache.get(database, session, search("119"), START) == b"found"


def test_what_others_are_about_to_delete_is_not_waited_for(postgresql: Databases) -> None:
    with postgresql.new() as url, closing(open_database(url)) as database:
        ended, running = begin_session(database), begin_session(database)
        put(database, ended, "a")
        with database.writing() as deleting:
            deleting.execute(update(web_cache_entries).values(size=1))
            web_cache.touch(database, running, START + SESSION)
        assert count(database) == 1
